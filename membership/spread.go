package membership

import (
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// spread is the corrected broadcast of a commit: along a tree over those who go
// on, with delayed correction, so that neither a dead relay nor a dead root
// keeps it from anybody who can be reached. Joiners are not in it: their first
// view comes with their answer.
type spread struct {
	value   *value
	root    protocol.Rank
	ranks   []protocol.Rank // by place in the broadcast
	process *broadcast.Process
	due     protocol.Time   // when to pull again
	removed []protocol.Rank // whom its root tells as well, after all others: they leave, or live after all
}

// correctionDelay is how long correction waits for a neighbor, in parts of the
// time after which frames are sent again.
const correctionDelay = 4

// beginSpread takes part in the broadcast of a value that was just decided.
func (m *Machine) beginSpread(now protocol.Time, v *value, root protocol.Rank) {
	m.spread = spread{due: protocol.Never}
	if root == protocol.NoRank {
		return
	}
	self := m.config.Self.Rank
	k := m.memo // made when the value was applied
	if k.plan == nil || k.root != root {
		k.lay(root, m.config.Resend/correctionDelay)
	}
	if me, ok := slices.BinarySearch(k.ranks, self); ok && k.plan != nil {
		m.spread = spread{value: v, root: root, ranks: k.ranks, process: k.plan.Process(protocol.Rank(me)), due: now}
	}
	if root == self {
		for _, i := range v.removed.each() {
			if r := m.view.Members[i].Rank; r != self {
				m.spread.removed = append(m.spread.removed, r)
			}
		}
	}
}

// lay lays the value's broadcast over those who go on, and its root. There is no
// plan if the root is no member.
func (k *memo) lay(root protocol.Rank, delay protocol.Time) {
	k.root, k.ranks, k.plan = root, nil, nil
	for i, member := range k.before.Members {
		if !k.value.removed.has(i) || member.Rank == root {
			k.ranks = append(k.ranks, member.Rank)
		}
	}
	size := protocol.Rank(len(k.ranks))
	place, ok := slices.BinarySearch(k.ranks, root)
	if !ok {
		return
	}
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, size, protocol.Rank(place))
	if err != nil {
		return
	}
	k.plan, _ = broadcast.NewPlan(broadcast.Config{
		Size: size, Root: protocol.Rank(place),
		Dissemination: broadcast.Tree{Tree: tree}, Correction: broadcast.Delayed{Delay: delay},
	})
}

// hearSpread hands a commit to the broadcast it belongs to. If that is over here,
// one who asks still gets its answer.
func (m *Machine) hearSpread(now protocol.Time, f *frame) {
	s := &m.spread
	from, known := slices.BinarySearch(s.ranks, f.from)
	if s.process == nil || s.value.number != f.value.number || !known {
		if f.route == rightward {
			m.put(f.from, frame{kind: Commit, route: leftward, root: f.root, value: f.value})
		}
		return
	}
	message := broadcast.Message{From: protocol.Rank(from), Phase: protocol.Correction}
	switch f.route {
	case byTree:
		message.Phase = protocol.Dissemination
	case leftward:
		message.Body.Kind = broadcast.Leftward
	case rightward:
		message.Body.Kind = broadcast.Rightward
	default:
		return
	}
	s.process.Receive(now, &message)
	s.due = now
}

// runSpread pulls the broadcast as far as it goes now.
func (m *Machine) runSpread(now protocol.Time) {
	s := &m.spread
	if s.due > now {
		return
	}
	s.due = protocol.Never
	var a broadcast.Action
	for s.process.Next(now, &a); a.Verb == protocol.Send; s.process.Next(now, &a) {
		f := frame{kind: Commit, root: s.root, value: s.value}
		switch {
		case a.Phase == protocol.Dissemination:
		case a.Body.Kind == broadcast.Leftward:
			f.route = leftward
		default:
			f.route = rightward
		}
		m.put(s.ranks[a.To], f)
		if f.route == rightward {
			// An answer takes a round trip; asking further out meanwhile would
			// ask everybody.
			s.due = now + m.config.Resend/correctionDelay
			return
		}
	}
	if a.Verb == protocol.WaitUntil {
		s.due = a.At
	}
	for _, r := range s.removed {
		m.put(r, frame{kind: Commit, route: byHelp, root: s.root, value: s.value})
	}
	s.removed = nil
}
