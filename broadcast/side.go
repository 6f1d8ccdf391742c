package broadcast

import "github.com/pleach-go/pleach/protocol"

// side is a direction on the ring. Corrections treat their two sides alike, so
// they keep their state in arrays of two, indexed by side.
type side uint8

const (
	left side = iota
	right

	// sides is the number of sides, for arrays.
	sides = iota
)

// distance is how far apart two ranks are on the ring. States keep distances, not
// ranks, and keep them small.
type distance int32

// other is the opposite side.
func (s side) other() side { return 1 - s }

// kind is the kind of a correction message sent to this side.
func (s side) kind() Kind { return Leftward + Kind(s) }

// heardFrom is the side a correction message came from: what was sent to the
// right comes from the left. Messages say which way they went because, seen
// from far around the ring, a distance alone does not.
func heardFrom(k Kind) side { return side(k - Leftward).other() }

// neighbor returns the rank at distance d on side s.
func (p *Process) neighbor(s side, d distance) protocol.Rank {
	if s == left {
		return p.plan.ring.Left(p.rank(), protocol.Rank(d))
	}
	return p.plan.ring.Right(p.rank(), protocol.Rank(d))
}

// distance returns how far away rank r is on side s.
func (p *Process) distance(s side, r protocol.Rank) distance {
	if s == left {
		return distance(p.plan.ring.DistanceLeft(p.rank(), r))
	}
	return distance(p.plan.ring.DistanceRight(p.rank(), r))
}

// circle is the distance all around the ring.
func (p *Plan) circle() distance { return distance(p.ring.Size) }

// reach returns the longest distance that correction may cover on side s before it meets the end of
// a line; on a ring there is none, and a full circle is the bound.
func (p *Process) reach(s side) distance {
	switch {
	case !p.plan.line:
		return p.plan.circle()
	case s == left:
		return distance(p.rank())
	default:
		return p.plan.circle() - 1 - distance(p.rank())
	}
}

// correctAt sends a correction message to distance d on side s.
func (p *Process) correctAt(s side, d distance, a *Action) {
	a.Send(protocol.Correction, p.neighbor(s, d), Body{Kind: s.kind()})
}
