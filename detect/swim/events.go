package swim

// Memberlist reports what it sees of its nodes through callbacks. This file turns
// them into the latest node of each rank.

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// node is the latest process that memberlist has met under a rank.
type node struct {
	incarnation uint64
	address     string // Of its detector.
	alive       bool
	died        time.Time // If not alive.
}

// forgetAfter is how long a dead node that is not watched is remembered: a view
// that contains it may be on its way.
const forgetAfter = time.Minute

// events receives the callbacks of memberlist. They run under a lock of
// memberlist, so they only take notes.
type events Detector

// NotifyJoin is called when a node is met or has shown that it is alive.
func (e *events) NotifyJoin(n *memberlist.Node) { (*Detector)(e).note(n, true) }

// NotifyLeave is called when memberlist declares a node dead.
func (e *events) NotifyLeave(n *memberlist.Node) { (*Detector)(e).note(n, false) }

// NotifyUpdate is called when the metadata of a node changes; Pleach sets none.
func (e *events) NotifyUpdate(*memberlist.Node) {}

func (s *Detector) note(n *memberlist.Node, alive bool) {
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

// wake makes run check the peers soon.
func (s *Detector) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
