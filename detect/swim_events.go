package detect

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// node is the latest process that memberlist has met under a rank.
type node struct {
	incarnation uint64
	address     string // Of its SWIM.
	alive       bool
	died        time.Time // If not alive.
}

// forgetAfter is when a dead contact that is not watched is forgotten. A view
// with it may just be on its way.
const forgetAfter = time.Minute

// events is SWIM as memberlist sees it. It is called under a lock of
// memberlist's: it only takes notes.
type events SWIM

// NotifyJoin is called when a node is met, or has shown that it is alive.
func (e *events) NotifyJoin(n *memberlist.Node) { (*SWIM)(e).note(n, true) }

// NotifyLeave is called when a node is held dead.
func (e *events) NotifyLeave(n *memberlist.Node) { (*SWIM)(e).note(n, false) }

// NotifyUpdate is called for data that members do not have.
func (e *events) NotifyUpdate(*memberlist.Node) {}

func (s *SWIM) note(n *memberlist.Node, alive bool) {
	rank, incarnation, err := parseName(n.Name)
	if err != nil {
		return // Not reached: see membersOnly.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := node{incarnation: incarnation, address: n.Address(), alive: alive}
	if !alive {
		c.died = time.Now()
	}
	if c.incarnation >= s.nodes[rank].incarnation {
		s.nodes[rank] = c
		s.wake()
	}
}

// wake has the contacts looked at.
func (s *SWIM) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
