package logp

import "github.com/pleach-go/pleach/protocol"

// contention holds the messages that wait for busy receive ports: a list per
// port, all in one pool, and a ring that says which ports to look at when.
type contention[B any] struct {
	pool    []waiter[B]
	free    int32      // first unused waiter
	watched [][]uint32 // ports to look at, by time
	count   int        // ports watched
}

// waiter is one waiting message.
type waiter[B any] struct {
	flight[B]
	next int32
}

// none ends a list of waiters.
const none int32 = -1

func (c *contention[B]) reset(overhead int) {
	if len(c.watched) != overhead+1 {
		c.watched = make([][]uint32, overhead+1)
	}
	for i := range c.watched {
		c.watched[i] = c.watched[i][:0]
	}
	c.pool, c.free, c.count = c.pool[:0], none, 0
}

func (c *contention[B]) active() bool { return c.count > 0 }

// push queues a message at a port.
func (c *contention[B]) push(queue *int32, f *flight[B]) {
	i := c.free
	if i == none {
		i = int32(len(c.pool))
		c.pool = append(c.pool, waiter[B]{})
	} else {
		c.free = c.pool[i].next
	}
	c.pool[i] = waiter[B]{flight: *f, next: *queue}
	*queue = i
}

// pop removes the message at a port that was decided first.
func (c *contention[B]) pop(queue *int32) flight[B] {
	first := queue
	for link := &c.pool[*queue].next; *link != none; link = &c.pool[*link].next {
		if before(&c.pool[*link].flight, &c.pool[*first].flight) {
			first = link
		}
	}
	i := *first
	*first = c.pool[i].next
	c.pool[i].next = c.free
	c.free = i
	return c.pool[i].flight
}

// watch has a port looked at at time t, at most one overhead from now.
func (c *contention[B]) watch(to uint32, t protocol.Time) {
	slot := &c.watched[int(t)%len(c.watched)]
	*slot = append(*slot, to)
	c.count++
}

// take removes and returns the ports to look at now; the list is valid until
// the clock moves on.
func (c *contention[B]) take(now protocol.Time) []uint32 {
	slot := &c.watched[int(now)%len(c.watched)]
	list := *slot
	*slot = list[:0]
	c.count -= len(list)
	return list
}

// before reports whether a is received before b when both wait for one port:
// decided first goes first, then the lower rank.
func before[B any](a, b *flight[B]) bool {
	return a.order < b.order || a.order == b.order && a.from < b.from
}
