package membership

import (
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// commitCast is the corrected broadcast of a commit: along a tree over the members
// that stay, with delayed correction, so that neither a dead relay nor a dead root
// keeps it from a reachable member. Joiners are not in it: their first view comes
// with their answer.
type commitCast struct {
	value   *value
	root    protocol.Rank
	members Members // by rank in the broadcast
	process *broadcast.Process
	due     protocol.Time   // when to pull the broadcast again
	removed []protocol.Rank // members that get it from the root last: they leave, or are alive after all
	asked   int             // members to the right that were asked
}

// correctionDelay divides RetryInterval: correction waits for a neighbor for that
// part of it. For the answer of each further one it waits four times as long, maxWidened
// times.
const (
	correctionDelay = 4
	maxWidened      = 3
)

// beginCommitCast joins the broadcast of a value that was just decided. In a small
// group the root sends it to every member, and nothing is corrected: there is no
// relay that could be dead, the successor of a dead root broadcasts the value again,
// and a member that misses it is frozen and asks (see [Machine.runStatus]).
func (m *Machine) beginCommitCast(now protocol.Time, v *value, root protocol.Rank) {
	m.commitCast = commitCast{due: protocol.Never}
	if root == protocol.NoRank {
		return
	}
	self := m.config.Self.Rank
	var removed []protocol.Rank
	if root == self {
		removed = m.others(v.removed.each())
	}
	k := m.memo // filled when the value was applied
	if k.cast.Len() == 0 || k.root != root {
		k.setCastMembers(root)
	}
	if k.cast.Len() <= m.config.FlatThreshold {
		if root == self {
			for _, member := range k.cast.All() {
				if member.Rank != self {
					m.put(member.Rank, frame{kind: Commit, root: root, value: v})
				}
			}
			for _, r := range removed {
				m.put(r, frame{kind: Commit, route: toStraggler, root: protocol.NoRank, value: v})
			}
		}
		return
	}
	if k.plan == nil {
		k.planCommitCast(m.config.RetryInterval / correctionDelay)
	}
	if me, ok := k.cast.Index(self); ok && k.plan != nil {
		m.commitCast = commitCast{
			value: v, root: root, members: k.cast, process: k.plan.Process(protocol.Rank(me)), due: now,
			removed: removed,
		}
	}
}

// setCastMembers determines the participants of the broadcast: the members that stay,
// and its root.
func (k *memo) setCastMembers(root protocol.Rank) {
	removed := slices.DeleteFunc(k.before.ranksOf(k.value.removed), func(r protocol.Rank) bool { return r == root })
	k.root, k.cast, k.plan = root, k.before.Members.change(removed), nil
}

// planCommitCast plans the broadcast over its participants. There is no plan if the
// root is not a member.
func (k *memo) planCommitCast(delay protocol.Time) {
	size := protocol.Rank(k.cast.Len())
	root, ok := k.cast.Index(k.root)
	if !ok {
		return
	}
	// there is one over any members
	tree, _ := topology.New(topology.Binomial(), topology.Interleaved, size, protocol.Rank(root))
	k.plan, _ = broadcast.NewPlan(broadcast.Config{
		Size: size, Root: protocol.Rank(root),
		Dissemination: broadcast.Tree{Tree: tree}, Correction: broadcast.Delayed{Delay: delay},
	})
}

// handleCommitCast hands a commit to the broadcast it belongs to. If that is
// complete here, a sender that asks still gets its answer.
func (m *Machine) handleCommitCast(now protocol.Time, f *frame) {
	s := &m.commitCast
	from, known := s.members.Index(f.from)
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

// runCommitCast pulls the broadcast as far as it goes now.
func (m *Machine) runCommitCast(now protocol.Time) {
	s := &m.commitCast
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
		m.put(s.members.At(int(a.To)).Rank, f)
		if f.route == rightward {
			// An answer needs a round trip; asking further out meanwhile would
			// ask every member, and open a connection to each.
			s.due = now + m.config.RetryInterval/correctionDelay<<min(2*s.asked, 2*maxWidened)
			s.asked++
			return
		}
	}
	if a.Verb == protocol.WaitUntil {
		s.due = a.At
	}
	for _, r := range s.removed {
		m.put(r, frame{kind: Commit, route: toStraggler, root: protocol.NoRank, value: s.value})
	}
	s.removed = nil
}
