package unicast

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/base/queue"
	"github.com/pleach-go/pleach/protocol"
)

// Reply is how a request has ended. Err is a [*GoneError] if the receiver has left the
// view, and what [Machine.FailUnreachable] was given.
type Reply struct {
	Status Status
	Data   []byte
	Err    error
}

// asked is the requests of this member that wait for a reply.
type asked struct {
	last    uint64
	pending map[uint64]*pending
}

type pending struct {
	to   protocol.Rank
	done func(Reply)
}

// Caller names a request of another member.
type Caller struct {
	Rank        protocol.Rank
	Incarnation uint64
	Number      uint64
}

// Request is a request of another member.
type Request struct {
	Caller
	Name string
	// Header is empty if there is none.
	Header header.Encoded
	Data   []byte
}

// served is the others' requests.
type served struct {
	running map[Caller]bool // false: it is canceled, or its reply has not arrived yet
	waiting queue.Queue[Request]
}

// Request sends a request to a member's handler of a name, with a header unless that is empty, and
// calls done when it has ended. It keeps data, which must not change. It returns a number for
// [Machine.Cancel], [ErrBusy] if too many requests wait for their replies, or a [*GoneError].
func (m *Machine) Request(to protocol.Rank, name string, h header.Encoded, data []byte, done func(Reply)) (uint64,
	error,
) {
	switch {
	case m.members.Find(to) == nil:
		return 0, &GoneError{to, m.view}
	case len(m.asked.pending) >= m.config.MaxRequests:
		return 0, ErrBusy
	}
	m.asked.last++
	number := m.asked.last
	m.asked.pending[number] = &pending{to, done}
	m.post(to, &message{kind: request, number: number, name: name, header: h, body: data}, nil)
	return number, nil
}

// Cancel ends a request whose reply is not needed any more, and tells its receiver.
func (m *Machine) Cancel(number uint64) {
	if p := m.asked.pending[number]; p != nil {
		delete(m.asked.pending, number)
		m.progress++
		m.post(p.to, &message{kind: cancel, number: number}, nil)
	}
}

// FailUnreachable ends the requests to some members with an error.
func (m *Machine) FailUnreachable(ranks []protocol.Rank, err error) {
	for _, r := range ranks {
		m.fail(r, err)
	}
}

// fail ends the requests to a member.
func (m *Machine) fail(to protocol.Rank, err error) {
	for _, number := range slices.Sorted(maps.Keys(m.asked.pending)) {
		if p := m.asked.pending[number]; p.to == to {
			delete(m.asked.pending, number)
			m.progress++
			p.done(Reply{Err: err})
		}
	}
}

// handleReply ends a request.
func (m *Machine) handleReply(from protocol.Rank, msg *message) {
	p := m.asked.pending[msg.number]
	if p == nil || p.to != from {
		return // it was canceled
	}
	delete(m.asked.pending, msg.number)
	m.progress++
	p.done(Reply{Status: msg.status, Data: msg.body})
}

// handleRequest serves a request, now or later, or tells that there are too many.
func (m *Machine) handleRequest(from protocol.Rank, msg *message) {
	caller := Caller{from, m.members.Find(from).Incarnation, msg.number}
	r := Request{Caller: caller, Name: msg.name, Header: msg.header, Data: msg.body}
	switch {
	case len(m.served.running) < m.config.MaxRequests:
		m.serve(r)
	case m.served.waiting.Len() < m.config.MaxRequests:
		m.served.waiting.Push(r)
	default:
		m.post(from, &message{kind: reply, number: msg.number, status: Overloaded}, nil)
	}
}

// serve begins to serve a request.
func (m *Machine) serve(r Request) {
	m.served.running[r.Caller] = true
	m.config.Serve(r)
}

// Reply answers a request. It keeps data, which must not change. The request counts as
// being served until the reply has arrived, so that replies are limited, too.
func (m *Machine) Reply(to Caller, s Status, data []byte) {
	if !m.served.running[to] {
		m.finish(to) // the caller does not wait any more
		return
	}
	m.served.running[to] = false
	m.post(to.Rank, &message{kind: reply, number: to.Number, status: s, body: data}, func() { m.finish(to) })
}

// finish ends a request that was served, and serves the next one that waits.
func (m *Machine) finish(c Caller) {
	delete(m.served.running, c)
	for m.served.waiting.Len() > 0 && len(m.served.running) < m.config.MaxRequests {
		if r := m.served.waiting.Pop(); m.holds(r.Caller) {
			m.serve(r)
		}
	}
}

// holds reports whether a caller is in the view.
func (m *Machine) holds(c Caller) bool {
	of := m.members.Find(c.Rank)
	return of != nil && of.Incarnation == c.Incarnation
}

// handleCancel stops serving a request, or does not begin to.
func (m *Machine) handleCancel(from protocol.Rank, number uint64) {
	c := Caller{from, m.members.Find(from).Incarnation, number}
	if m.served.running[c] {
		m.served.running[c] = false
		m.config.Canceled(c)
	}
	for range m.served.waiting.Len() {
		if r := m.served.waiting.Pop(); r.Caller != c {
			m.served.waiting.Push(r)
		}
	}
}

// dropCaller cancels the requests of a member that has left the view.
func (m *Machine) dropCaller(rank protocol.Rank, incarnation uint64) {
	byNumber := func(a, b Caller) int { return cmp.Compare(a.Number, b.Number) }
	for _, c := range slices.SortedFunc(maps.Keys(m.served.running), byNumber) {
		if c.Rank == rank && c.Incarnation == incarnation && m.served.running[c] {
			m.served.running[c] = false
			m.config.Canceled(c)
		}
	}
}
