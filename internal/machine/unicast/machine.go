package unicast

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/base/queue"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Config configures a [Machine].
type Config struct {
	// Self is the rank of this member, and View its first view.
	Self protocol.Rank
	View membership.View
	// Window bounds the bytes on their way to one program, apart from one message.
	Window int
	// MaxRequests bounds the requests that wait for their replies. Of the others'
	// requests it bounds those that are being served, and those that wait for that.
	MaxRequests int

	// Post puts a message, head followed by body, on the channel to a member of the
	// view. If released is not nil, it is called when the message has arrived or its
	// receiver has left the view.
	Post func(to protocol.Rank, head, body []byte, released func())
	// Serve begins to serve a request of another member; the answer is given by
	// [Machine.Reply]. Canceled says that the reply is not needed any more.
	Serve    func(Request)
	Canceled func(Caller)
	// State takes the state of the group where a view begins, or with a Status other
	// than OK the text of an error.
	State func(from protocol.Rank, view uint64, s Status, data []byte)
	// Arrival takes a member's report of a marked broadcast of this one, by its number.
	Arrival func(from protocol.Rank, number uint64, report []byte)
}

// Message is a message for the program.
type Message struct {
	From protocol.Rank
	View uint64 // that of this member when it arrived
	// Header is empty if there is none.
	Header header.Encoded
	Data   []byte
}

// ErrBusy is returned when a limit is reached. [Machine.Progress] tells when it makes
// sense to try again.
var ErrBusy = errors.New("direct: too much is on its way")

// GoneError is returned when the receiver is not in the view, or has left it.
type GoneError struct {
	Rank protocol.Rank
	View uint64 // the first known without it
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("direct: rank %d is not in view %d", e.Rank, e.View)
}

// Machine is one member's side of what members tell single members. Make one with [New].
type Machine struct {
	config   Config
	view     uint64
	members  membership.Members
	peers    map[protocol.Rank]*peer // those that something was sent to or received from
	inbox    queue.Queue[delivery]
	asked    asked
	served   served
	progress uint64
}

// delivery is a message that waits for the program, and the flow control that it belongs to.
type delivery struct {
	Message
	peer *peer
}

// peer is the flow control with another member, in both directions. All counts are of
// bytes, since the member joined.
type peer struct {
	sent, granted uint64 // sent to its program, and taken by it as far as known
	taken, told   uint64 // taken by this program, and told to the peer
	waiting       int    // messages of the peer in the inbox
}

// messageCost is what a message counts besides its bytes, so that empty ones are bounded
// too.
const messageCost = 64

// cost returns what a message to a program counts in a window.
func cost(h header.Encoded, data []byte) uint64 { return uint64(len(h) + len(data) + messageCost) }

// New makes a machine.
func New(c Config) *Machine {
	return &Machine{
		config: c, view: c.View.Number, members: c.View.Members, peers: make(map[protocol.Rank]*peer),
		asked: asked{pending: make(map[uint64]*pending)}, served: served{running: make(map[Caller]bool)},
	}
}

// Install installs a view. What was for members that are not in it any more ends.
func (m *Machine) Install(v *membership.View) {
	before := m.members
	m.view, m.members = v.Number, v.Members
	m.progress++
	for gone := range before.Since(v.Members) {
		delete(m.peers, gone.Rank)
		m.dropCaller(gone.Rank, gone.Incarnation)
		m.fail(gone.Rank, &GoneError{gone.Rank, m.view})
	}
}

// peer returns the flow control with a member.
func (m *Machine) peer(r protocol.Rank) *peer {
	p := m.peers[r]
	if p == nil {
		p = &peer{}
		m.peers[r] = p
	}
	return p
}

// Send sends a message to a member's program, with a header unless that is empty. It keeps data,
// which must not change. It returns [ErrBusy] while the program has not taken enough of the messages before, and a
// [*GoneError] if the receiver is not a member.
func (m *Machine) Send(to protocol.Rank, h header.Encoded, data []byte) error {
	if m.members.Find(to) == nil {
		return &GoneError{to, m.view}
	}
	p := m.peer(to)
	if p.sent-p.granted >= uint64(m.config.Window) {
		return ErrBusy
	}
	p.sent += cost(h, data)
	m.post(to, &message{kind: send, header: h, body: data}, nil)
	return nil
}

// SendState sends the state of the group where a view begins to a member that lacks it, or
// the text of an error. It keeps data, which must not change.
func (m *Machine) SendState(to protocol.Rank, incarnation, view uint64, s Status, data []byte) {
	if of := m.members.Find(to); of != nil && of.Incarnation == incarnation {
		m.post(to, &message{kind: state, number: view, status: s, body: data}, nil)
	}
}

// SendArrival reports the arrival of a marked broadcast to the member that has made it, if
// that is still in the view.
func (m *Machine) SendArrival(to protocol.Rank, incarnation, number uint64, report []byte) {
	if of := m.members.Find(to); of != nil && of.Incarnation == incarnation {
		m.post(to, &message{kind: arrival, number: number, body: report}, nil)
	}
}

// post puts a message on a channel. What a member tells itself does not need one.
func (m *Machine) post(to protocol.Rank, msg *message, released func()) {
	if to != m.config.Self {
		m.config.Post(to, msg.appendHead(nil), msg.body, released)
		return
	}
	if released != nil {
		released()
	}
	m.handle(to, msg)
}

// Receive takes what the channel of a member has delivered, and keeps the memory.
func (m *Machine) Receive(from protocol.Rank, data []byte) error {
	msg, err := parse(data)
	if err != nil {
		return fmt.Errorf("%w, from rank %d", err, from)
	}
	if m.members.Find(from) != nil {
		m.handle(from, &msg)
	}
	return nil
}

// handle takes a message.
func (m *Machine) handle(from protocol.Rank, msg *message) {
	switch msg.kind {
	case send:
		p := m.peer(from)
		p.waiting++
		m.inbox.Push(delivery{Message{From: from, View: m.view, Header: msg.header, Data: msg.body}, p})
	case credit:
		p := m.peer(from)
		p.granted = min(max(p.granted, msg.number), p.sent)
		m.progress++
	case request:
		m.handleRequest(from, msg)
	case reply:
		m.handleReply(from, msg)
	case cancel:
		m.handleCancel(from, msg.number)
	case state:
		m.config.State(from, msg.number, msg.status, msg.body)
	case arrival:
		m.config.Arrival(from, msg.number, msg.body)
	}
}

// Unread returns how many bytes the program of a member has not taken yet, as far as known.
func (m *Machine) Unread(r protocol.Rank) uint64 {
	if p := m.peers[r]; p != nil {
		return p.sent - p.granted
	}
	return 0
}

// Pending returns how many messages wait for the program.
func (m *Machine) Pending() int { return m.inbox.Len() }

// Deliver returns the next message for the program, if there is one, and gives its sender
// credit for it.
func (m *Machine) Deliver() (Message, bool) {
	if m.inbox.Len() == 0 {
		return Message{}, false
	}
	d := m.inbox.Pop()
	p := d.peer
	p.waiting--
	p.taken += cost(d.Header, d.Data)
	if m.peers[d.From] != p {
		return d.Message, true // its sender has left
	}
	if p.waiting == 0 || p.taken-p.told >= uint64(m.config.Window/4) {
		p.told = p.taken
		m.post(d.From, &message{kind: credit, number: p.taken}, nil)
	}
	return d.Message, true
}

// Progress counts what may let a call succeed that has returned [ErrBusy].
func (m *Machine) Progress() uint64 { return m.progress }
