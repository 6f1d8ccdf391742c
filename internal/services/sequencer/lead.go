package sequencer

import (
	"errors"
	"fmt"
	"slices"
)

// The leader of a view: it broadcasts what members forward to it, and how far a majority has
// come.

// ErrNotLeader is returned by Accept if this process does not lead the view that the sender
// believes it to. The sender forwards again when it has seen the next leader.
var ErrNotLeader = errors.New("ordered: not the leader of that view")

// lead is what the leader of a view keeps. The zero value is that of another member.
type lead struct {
	seen    uint64   // number of the last view installed at this process
	leading uint64   // the view that it leads; 0: none
	members []Member // the voters first
	voters  int
	begun   bool
	// accepted says that a member has forwarded something: it knows the order.
	accepted bool
	marks    []uint64 // to be broadcast
	queue    []batch  // to be broadcast
	queued   int      // bytes of them
	casting  []batch  // in the broadcast that is on its way
	acks     map[int]uint64
	// committed is the number of messages that a majority of the voters has, as last sent to the other members.
	committed uint64
}

// View tells the machine of a view, with its members: the voters first, each part in order of
// rank. The first one leads.
func (m *Machine) View(number uint64, members []Member, voters int) {
	if number <= m.seen {
		return
	}
	m.lead = lead{seen: number}
	if len(members) > 0 && members[0] == m.config.Self {
		m.lead = lead{
			seen: number, leading: number, members: slices.Clone(members), voters: voters,
			acks: make(map[int]uint64),
		}
	}
}

// Accept takes what a member forwards. It is numbered unless another view begins first.
func (m *Machine) Accept(from int, body []byte) error {
	f, err := decode(body)
	switch {
	case err != nil:
		return err
	case f.kind != kindForward || len(f.batches) != 1:
		return ErrFrame
	case m.leading == 0 || f.view != m.leading:
		return ErrNotLeader
	}
	b := f.batches[0]
	if b.origin.Rank != from || !slices.Contains(m.members, b.origin) {
		return fmt.Errorf("%w: of rank %d, from rank %d", ErrFrame, b.origin.Rank, from)
	}
	m.queue, m.accepted = append(m.queue, b), true
	m.queued += len(b.raw)
	return nil
}

// Queued returns how many bytes wait to be broadcast by this leader.
func (m *Machine) Queued() int { return m.queued }

// Acknowledge takes an acknowledgment of a member.
func (m *Machine) Acknowledge(from int, body []byte) error {
	f, err := decode(body)
	if err != nil {
		return err
	}
	if f.kind == kindAck && m.leading != 0 && f.view == m.leading {
		m.acks[from] = max(m.acks[from], f.count)
	}
	return nil
}

// NextCast returns the next frame to broadcast to the group, if there is one. The driver tells
// by CastDone how that has ended, before it asks again.
func (m *Machine) NextCast() (view uint64, body []byte, ok bool) {
	switch {
	case m.leading == 0:
		return 0, nil, false
	case !m.begun:
		return m.leading, (&frame{kind: kindBegin, view: m.leading, members: m.members}).encode(), true
	case len(m.marks) > 0:
		mark := m.marks[0]
		m.marks = m.marks[1:]
		return m.leading, (&frame{kind: kindMark, view: m.leading, count: mark}).encode(), true
	}
	count := m.majority()
	if len(m.queue) == 0 && count == m.committed {
		return 0, nil, false
	}
	size, n := 0, 0
	for n < len(m.queue) && size < m.config.MaxBatch {
		size += len(m.queue[n].raw)
		n++
	}
	m.casting, m.queue = m.queue[:n:n], m.queue[n:]
	m.queued -= size
	m.committed = count
	return m.leading, (&frame{kind: kindNumber, view: m.leading, count: count, batches: m.casting}).encode(), true
}

// CastDone says how the broadcast of a frame has ended. One that has failed is repeated: it may
// be received twice then, and its messages are numbered once.
func (m *Machine) CastDone(view uint64, failed bool) {
	if view != m.leading {
		return
	}
	switch {
	case failed:
		for i := range m.casting {
			m.queued += len(m.casting[i].raw)
		}
		m.queue = append(m.casting, m.queue...)
		m.committed = 0
	default:
		m.begun = true
	}
	m.casting = nil
}

// majority returns how many messages a majority of the view's voters has received: they decide the
// next view.
func (m *Machine) majority() uint64 {
	if !m.config.Safe {
		return 0
	}
	counts := make([]uint64, 0, m.voters)
	for _, member := range m.members[:m.voters] {
		switch {
		case member != m.config.Self:
			counts = append(counts, m.acks[member.Rank])
		case m.view == m.leading:
			counts = append(counts, m.numbered)
		default:
			counts = append(counts, 0)
		}
	}
	slices.Sort(counts)
	return max(m.committed, counts[(len(counts)-1)/2])
}
