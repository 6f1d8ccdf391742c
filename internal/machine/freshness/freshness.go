// Package freshness decides since when a member certainly has everything that its group has
// sent, so that a program may serve reads from its memory.
//
// A member asks all others in rounds. An answer has the view of the member that answers, says
// whether it takes part in a change of views, and has the position up to which that member has
// each stream. A round proves two things about the moment at which it was begun:
//
//   - There was no later view. A later view needs a quorum of the present one, and so do the
//     answers: members of both have said that they had not promised one. Two quorums always
//     have a member in common.
//   - Nothing is missing that a member of the quorum had sent or received, as soon as this
//     member's program has processed every stream up to the positions in the answers.
//
// A [Machine] is a state machine without I/O, and knows the time only from its driver. A process
// that was stopped, or cut off, has no proof newer than its last round, however the network and
// the process behave: there is no timeout to be late.
package freshness

import (
	"maps"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Stream names the stream of a member.
type Stream struct {
	Rank        protocol.Rank
	Incarnation uint64
}

// Answer is what a member says in a round.
type Answer struct {
	View      uint64
	Changing  bool              // it takes part in a change of views, or has yet to send what it accepted
	Positions map[Stream]uint64 // up to where it has each stream, its own included
}

// Encode encodes an answer.
func (a *Answer) Encode() []byte {
	changing := uint8(0)
	if a.Changing {
		changing = 1
	}
	b := wire.AppendUint8(wire.AppendUint64(nil, a.View), changing)
	for s, position := range a.Positions {
		b = wire.AppendUint64(wire.AppendUint64(wire.AppendRank(b, s.Rank), s.Incarnation), position)
	}
	return b
}

// Decode decodes an answer.
func Decode(b []byte) (Answer, error) {
	d := wire.NewDecoder(b)
	a := Answer{View: d.Uint64(), Changing: d.Uint8() != 0, Positions: make(map[Stream]uint64)}
	for d.Left() > 0 && d.Err() == nil {
		s := Stream{d.Rank(), d.Uint64()}
		a.Positions[s] = d.Uint64()
	}
	return a, d.Finish()
}

// Program is what the machine asks of its driver.
type Program interface {
	// Delivered returns the position up to which all of a stream was delivered to the queues of
	// the program. It reports false if the stream is not known, or something of it is lost.
	Delivered(s Stream) (position uint64, ok bool)
	// Mark marks what is in the queues now, and Passed reports whether the program has
	// processed all of it.
	Mark() map[uint64]uint64
	Passed(marks map[uint64]uint64) bool
}

// maxRounds bounds the rounds that have not ended. If a program is slow, several wait for it.
const maxRounds = 16

// Machine is one member's proof. The zero value has none.
type Machine struct {
	// Arbiter says that the group has an arbiter, which may let either half of a view's voters decide
	// the next one: then half of them prove nothing.
	Arbiter bool

	last   uint64 // number of the last round
	rounds []*round
	proven protocol.Time // beginning of the last round that ended; 0: none has
}

// round asks all members once.
type round struct {
	number   uint64
	tie      membership.Tie
	began    protocol.Time
	view     membership.View
	answered map[protocol.Rank]bool
	target   map[Stream]uint64
	marks    map[uint64]uint64 // nil: not all was delivered
}

// Begin begins a round in a view, with the answer of this member itself, and returns its number.
// It returns 0 if too many rounds have not ended.
func (m *Machine) Begin(now protocol.Time, v *membership.View, self protocol.Rank, own Answer) uint64 {
	if len(m.rounds) > 0 && m.rounds[0].view.Number != v.Number {
		m.rounds = nil
	}
	if len(m.rounds) == maxRounds {
		// The oldest that has no quorum gives way to the new one; those that wait for the program stay.
		i := 0
		for i < len(m.rounds) && m.rounds[i].quorum() {
			i++
		}
		if i == len(m.rounds) {
			return 0
		}
		m.rounds = append(m.rounds[:i], m.rounds[i+1:]...)
	}
	m.last++
	tie := membership.LowestDecides
	if m.Arbiter {
		tie = membership.NoneDecides
	}
	r := &round{
		number: m.last, tie: tie, began: now, view: *v, answered: make(map[protocol.Rank]bool),
		target: make(map[Stream]uint64),
	}
	m.rounds = append(m.rounds, r)
	r.take(self, &own)
	return r.number
}

// Answer takes the answer of a member in a round.
func (m *Machine) Answer(number uint64, from protocol.Rank, a Answer) {
	for _, r := range m.rounds {
		if r.number == number && r.view.Has(from) {
			r.take(from, &a)
		}
	}
}

func (r *round) take(from protocol.Rank, a *Answer) {
	if a.View != r.view.Number || a.Changing || r.marks != nil {
		return
	}
	r.answered[from] = true
	for s, position := range a.Positions {
		r.target[s] = max(r.target[s], position)
	}
}

// quorum reports whether the members that have answered could decide the next view.
func (r *round) quorum() bool {
	return r.view.CanDecideWithout(func(m *membership.Member) bool { return !r.answered[m.Rank] }, r.tie)
}

// Waits reports whether a round waits for the program.
func (m *Machine) Waits() bool {
	for _, r := range m.rounds {
		if r.marks != nil {
			return true
		}
	}
	return false
}

// Look ends the rounds that have a proof, in the present view, and drops those of other views.
func (m *Machine) Look(view uint64, p Program) {
	if len(m.rounds) > 0 && m.rounds[0].view.Number != view {
		m.rounds = nil
	}
	for i := len(m.rounds) - 1; i >= 0; i-- {
		r := m.rounds[i]
		if r.marks == nil && r.quorum() && r.delivered(p) {
			r.marks = maps.Clone(p.Mark())
			if r.marks == nil {
				r.marks = make(map[uint64]uint64)
			}
		}
		if r.marks != nil && p.Passed(r.marks) {
			m.proven = max(m.proven, r.began)
			m.rounds = append(m.rounds[:0:0], m.rounds[i+1:]...) // earlier ones prove less
			return
		}
	}
}

// delivered reports whether all that the answers name was delivered.
func (r *round) delivered(p Program) bool {
	for s, position := range r.target {
		if has, ok := p.Delivered(s); !ok || has < position {
			return false
		}
	}
	return true
}

// Proven returns the latest moment of which there is a proof: whatever the group had sent by
// then, the program has processed. It is 0 if there is none.
func (m *Machine) Proven() protocol.Time { return m.proven }
