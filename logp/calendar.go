package logp

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// calendar holds the messages under way, by the step in which their sends
// started. No message is under way for longer than a hop before it is received
// or waits for its port, so a ring of that many steps holds them all.
type calendar[B any] struct {
	steps  []step[B]
	opened *step[B] // the step that sends are added to
	total  int
	most   int // sends in one step: one per process
}

// step is the sends of one instant, in order of sender.
type step[B any] struct {
	flights []flight[B]
	senders []uint32 // the same by sender only: whose ports will be free
	queued  bool     // some were decided before, so their order of receipt is not that of the list
}

func (c *calendar[B]) reset(hop, processes int) {
	c.most = processes
	if len(c.steps) != hop+1 {
		c.steps = make([]step[B], hop+1)
	}
	for i := range c.steps {
		c.steps[i].clear()
	}
	c.total = 0
}

// at returns the sends that started at t.
func (c *calendar[B]) at(t protocol.Time) *step[B] { return &c.steps[int(t)%len(c.steps)] }

// open makes t the step that sends are added to.
func (c *calendar[B]) open(t protocol.Time) { c.opened = c.at(t) }

// add makes room for one more send and returns it.
func (c *calendar[B]) add(from uint32) *flight[B] {
	s := c.opened
	n := len(s.flights)
	if n == cap(s.flights) {
		s.grow(c.most)
	}
	s.flights = s.flights[:n+1]
	s.senders = append(s.senders, from)
	c.total++
	f := &s.flights[n]
	f.from = from
	return f
}

// close forgets the sends of one instant.
func (c *calendar[B]) close(s *step[B]) {
	c.total -= len(s.flights)
	s.clear()
}

// grow makes room for more sends. A step that many take part in will soon have
// all of them, so it gets room for all at once: doubling would leave as much
// memory behind again.
func (s *step[B]) grow(most int) {
	room := max(2*cap(s.flights), 1024)
	if room > most/16 {
		room = most
	}
	room -= len(s.flights)
	s.flights, s.senders = slices.Grow(s.flights, room), slices.Grow(s.senders, room)
}

func (s *step[B]) clear() { s.flights, s.senders, s.queued = s.flights[:0], s.senders[:0], false }

func (c *calendar[B]) active() bool { return c.total > 0 }
