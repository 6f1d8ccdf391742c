package session

// Client is a process that proposes, and its proposals that have no result yet. P is what the
// caller keeps of one.
type Client[P any] struct {
	id      ClientID
	seq     uint64 // of the last proposal
	pending []proposal[P]
	sent    int // how many of them are broadcast
}

// proposal is a command for a machine, or for none.
type proposal[P any] struct {
	seq     uint64
	machine string
	command []byte
	caller  P
}

// NewClient returns a process that has proposed nothing. No other one has its ID.
func NewClient[P any](id ClientID) Client[P] { return Client[P]{id: id} }

// ID returns the name of the process.
func (c *Client[P]) ID() ClientID { return c.id }

// Pending returns how many proposals wait for their results.
func (c *Client[P]) Pending() int { return len(c.pending) }

// Propose gives a command its number.
func (c *Client[P]) Propose(machine string, command []byte, caller P) {
	c.seq++
	c.pending = append(c.pending, proposal[P]{c.seq, machine, command, caller})
}

// Next returns the next command to broadcast, if there is one.
func (c *Client[P]) Next() (machine string, data []byte, ok bool) {
	if c.sent == len(c.pending) {
		return "", nil, false
	}
	p := &c.pending[c.sent]
	c.sent++
	return p.machine, encode(c.id, p.seq, c.pending[0].seq, p.command), true
}

// Again has all commands without a result broadcast again: the process was not a member for a
// while.
func (c *Client[P]) Again() { c.sent = 0 }

// Complete removes and returns the proposal that an outcome belongs to, if it still waits. It is
// the first one: those of a process are applied in order. If the group has forgotten this
// process, it returns all waiting proposals, and continues under a new ID.
func (c *Client[P]) Complete(o *Outcome, fresh func() ClientID) (done []P) {
	n := 0
	switch {
	case o.Forgotten:
		n = len(c.pending)
	case len(c.pending) > 0 && c.pending[0].seq == o.Seq:
		n = 1
	}
	for i := range c.pending[:n] {
		done = append(done, c.pending[i].caller)
	}
	c.pending, c.sent = c.pending[n:], max(c.sent-n, 0)
	if o.Forgotten {
		c.id, c.seq = fresh(), 0
	}
	return done
}
