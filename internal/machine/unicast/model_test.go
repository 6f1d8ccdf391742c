package unicast

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/protocol"
)

// model is three members. The process of the last rank is replaced now and then, or goes.
type model struct {
	t            *rapid.T
	view         uint64
	incarnations []uint64
	members      []*Machine
	channels     map[[2]int][]parcel
	serving      []map[Caller]bool // what each member's program serves; true: it was canceled
	gaveUp       map[Caller]bool   // requests that their callers have canceled
	missing      []int             // messages for each program
}

// parcel is a message on a channel.
type parcel struct {
	data     []byte
	released func()
}

const (
	modelWindow   = 500
	modelRequests = 2
)

func newModel(t *rapid.T) *model {
	m := &model{
		t: t, view: 1, incarnations: []uint64{1, 1, 1}, channels: map[[2]int][]parcel{}, gaveUp: map[Caller]bool{},
		members: make([]*Machine, 3), serving: make([]map[Caller]bool, 3), missing: make([]int, 3),
	}
	for i := range m.members {
		m.start(i)
	}
	return m
}

// start starts the process of a rank.
func (m *model) start(i int) {
	m.serving[i], m.missing[i] = map[Caller]bool{}, 0
	m.members[i] = New(Config{
		Self: protocol.Rank(i), View: viewOf(m.view, m.incarnations...), Window: modelWindow, MaxRequests: modelRequests,
		Post: func(to protocol.Rank, head, body []byte, released func()) {
			c := [2]int{i, int(to)}
			m.channels[c] = append(m.channels[c], parcel{slices.Concat(head, body), released})
		},
		Serve: func(r Request) {
			if _, twice := m.serving[i][r.Caller]; twice || m.incarnations[r.Rank] != r.Incarnation {
				m.t.Fatalf("rank %d serves %+v, served already: %v", i, r.Caller, twice)
			}
			m.serving[i][r.Caller] = false
		},
		Canceled: func(c Caller) {
			if canceled, served := m.serving[i][c]; !served || canceled {
				m.t.Fatalf("rank %d is told twice, or of nothing: %+v", i, c)
			}
			if m.incarnations[c.Rank] == c.Incarnation && !m.gaveUp[c] {
				m.t.Fatalf("rank %d stops to serve a member that waits: %+v", i, c)
			}
			m.serving[i][c] = true
		},
		State:   func(protocol.Rank, uint64, Status, []byte) {},
		Arrival: func(protocol.Rank, uint64, []byte) {},
	})
}

// live draws a member of the view.
func (m *model) live(name string) int {
	return rapid.SampledFrom(m.ranks()).Draw(m.t, name)
}

func (m *model) ranks() (list []int) {
	for i, incarnation := range m.incarnations {
		if incarnation > 0 {
			list = append(list, i)
		}
	}
	return list
}

// step does one thing.
func (m *model) step() {
	i := m.live("member")
	switch to := m.live("to"); rapid.SampledFrom([]string{
		"send", "take", "request", "reply", "cancel", "fail", "view",
		"arrive", "arrive", "arrive",
	}).Draw(m.t, "what") {
	case "send":
		m.send(i, to, rapid.IntRange(0, 300).Draw(m.t, "size"))
	case "take":
		if _, ok := m.members[i].Deliver(); ok {
			m.missing[i]--
		}
	case "request":
		m.request(i, to)
	case "reply":
		m.reply(i)
	case "cancel":
		if pending := slices.Sorted(maps.Keys(m.members[i].asked.pending)); len(pending) > 0 {
			m.gaveUp[Caller{protocol.Rank(i), m.incarnations[i], pending[0]}] = true
			m.members[i].Cancel(pending[0])
		}
	case "fail":
		m.members[i].FailUnreachable([]protocol.Rank{protocol.Rank(to)}, errors.New("unreachable"))
	case "view":
		m.change(rapid.Bool().Draw(m.t, "replaced"))
	case "arrive":
		m.arrive([2]int{i, to})
	}
	m.check()
}

func (m *model) send(i, to, size int) {
	peer := protocol.Rank(to)
	unread := m.members[i].Unread(peer)
	err := m.members[i].Send(peer, "", make([]byte, size))
	if busy := unread >= modelWindow; busy != errors.Is(err, ErrBusy) || !busy && err != nil {
		m.t.Fatalf("%d bytes are on their way: %v", unread, err)
	}
	if err == nil {
		m.missing[to]++
		if now := m.members[i].Unread(peer); now != unread+uint64(size+messageCost) {
			m.t.Fatalf("%d bytes on their way became %d, by %d", unread, now, size)
		}
	}
}

func (m *model) request(i, to int) {
	ended := 0
	before := len(m.members[i].asked.pending)
	_, err := m.members[i].Request(protocol.Rank(to), "name", "", []byte("data"), func(Reply) {
		ended++
		if ended > 1 {
			m.t.Fatalf("a request has ended twice")
		}
	})
	if busy := before >= modelRequests; busy != errors.Is(err, ErrBusy) || !busy && err != nil {
		m.t.Fatalf("%d requests wait: %v", before, err)
	}
}

// reply has a program answer the first request that it serves.
func (m *model) reply(i int) {
	serving := slices.SortedFunc(maps.Keys(m.serving[i]), func(a, b Caller) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Number, b.Number))
	})
	if len(serving) > 0 {
		delete(m.serving[i], serving[0])
		m.members[i].Reply(serving[0], OK, nil)
	}
}

// arrive has the first message of a channel arrive.
func (m *model) arrive(c [2]int) {
	if list := m.channels[c]; len(list) > 0 {
		m.channels[c] = list[1:]
		if err := m.members[c[1]].Receive(protocol.Rank(c[0]), list[0].data); err != nil {
			m.t.Fatal(err)
		}
		if list[0].released != nil {
			list[0].released()
		}
	}
}

// change installs a view in which the process of the last rank is another one, or none. What is on
// its way to that process or from it is released before.
func (m *model) change(replaced bool) {
	for _, c := range [][2]int{{0, 2}, {1, 2}, {2, 0}, {2, 1}, {2, 2}} {
		list := m.channels[c]
		delete(m.channels, c)
		for _, p := range list {
			if p.data[0] == byte(send) {
				m.missing[c[1]]--
			}
			if p.released != nil && c[0] != 2 {
				p.released()
			}
		}
	}
	m.view++
	m.incarnations[2] = 0
	if replaced {
		m.incarnations[2] = m.view
	}
	v := viewOf(m.view, m.incarnations...)
	for i := range 2 {
		m.members[i].Install(&v)
	}
	m.start(2)
}

// check compares the members with their limits and programs.
func (m *model) check() {
	for _, i := range m.ranks() {
		s := &m.members[i].served
		if len(s.running) > modelRequests || s.waiting.Len() > modelRequests || len(m.serving[i]) > modelRequests {
			m.t.Fatalf("rank %d serves %d requests, %d wait", i, len(s.running), s.waiting.Len())
		}
		for c, canceled := range m.serving[i] {
			if m.incarnations[c.Rank] != c.Incarnation && !canceled {
				m.t.Fatalf("rank %d serves a process that has left: %+v", i, c)
			}
		}
	}
}

// settle has all messages arrive, and all programs do their work.
func (m *model) settle() {
	for busy := true; busy; {
		busy = false
		for _, i := range m.ranks() {
			for _, to := range m.ranks() {
				for len(m.channels[[2]int{i, to}]) > 0 {
					busy = true
					m.arrive([2]int{i, to})
				}
			}
			for len(m.serving[i]) > 0 {
				busy = true
				m.reply(i)
			}
			for _, ok := m.members[i].Deliver(); ok; _, ok = m.members[i].Deliver() {
				busy = true
				m.missing[i]--
			}
		}
		m.check()
	}
}

// Whatever members ask of each other while views change: limits hold to the number, a request
// ends once, a process that has left is not served, and when all is taken nothing is left over.
func TestMembersUnderViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			m.step()
		}
		m.settle()
		for _, i := range m.ranks() {
			machine := m.members[i]
			if left := fmt.Sprint(len(machine.asked.pending), len(machine.served.running), machine.served.waiting.Len(),
				machine.Pending()); left != "0 0 0 0" {
				t.Fatalf("rank %d has left over: %s", i, left)
			}
			for _, to := range m.ranks() {
				if n := machine.Unread(protocol.Rank(to)); n != 0 {
					t.Fatalf("rank %d believes that rank %d has not taken %d bytes", i, to, n)
				}
			}
		}
		if m.missing[0] != 0 || m.missing[1] != 0 {
			t.Fatalf("messages are missing: %v", m.missing)
		}
	})
}

// A request that waits when its caller leaves is not served, whether or not another process has
// the caller's rank.
func TestRequestThatWaitsOfOneWhoLeft(t *testing.T) {
	for _, incarnation := range []uint64{0, 2} {
		p := newPair()
		p.members[0].config.MaxRequests = 3
		for range 3 {
			_, _ = p.members[0].Request(1, "", "", nil, func(Reply) {})
		}
		p.deliver(t)
		v := viewOf(2, incarnation, 1)
		p.members[1].Install(&v)
		for _, r := range p.served[1] {
			p.members[1].Reply(r.Caller, OK, nil)
		}
		if len(p.served[1]) != 2 || len(p.canceled[1]) != 2 || len(p.channels[0]) > 0 {
			t.Errorf("%d served, %d canceled, %d replies", len(p.served[1]), len(p.canceled[1]), len(p.channels[0]))
		}
	}
}

// Credit is told once per quarter of the window while more messages wait.
func TestCreditPerQuarter(t *testing.T) {
	p := newPair()
	for range 8 { // as many as the window takes, each an eighth of it
		if err := p.members[0].Send(1, "", make([]byte, 125-messageCost)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.members[0].Send(1, "", nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a full window: %v", err)
	}
	p.deliver(t)
	for i := 1; i <= 8; i++ {
		p.members[1].Deliver()
		if told := len(p.channels[0]); told != i/2 {
			t.Errorf("%d credits after %d messages", told, i)
		}
	}
}

// The state goes to the process that lacks it, not to one that has got its rank.
func TestStateGoesToItsProcess(t *testing.T) {
	p := newPair()
	var got []string
	p.members[0].config.State = func(from protocol.Rank, view uint64, s Status, data []byte) {
		got = append(got, fmt.Sprint(from, view, s, string(data)))
	}
	p.members[1].SendState(0, 1, 7, Offered, []byte("all"))
	p.members[1].SendState(0, 2, 8, OK, []byte("too late"))
	p.members[1].SendState(5, 1, 9, OK, []byte("to nobody"))
	p.deliver(t)
	if want := []string{fmt.Sprint(1, 7, Offered, "all")}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Messages that no member sends are refused, and every beginning of one is taken or refused.
func TestMessagesThatNoMemberSends(t *testing.T) {
	p := newPair()
	for name, m := range goldenMessages() {
		b := append(m.appendHead(nil), m.body...)
		for n := range len(b) {
			if err := p.members[0].Receive(1, b[:n:n]); err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, b := range map[string][]byte{
		"nothing":                 {},
		"no kind":                 {0},
		"an unknown kind":         {byte(headedRequest) + 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"half a number":           {byte(cancel), 0, 0, 0, 0, 0, 0, 0},
		"no length of a name":     {byte(request), 0, 0, 0, 0, 0, 0, 0, 1},
		"half a name":             {byte(request), 0, 0, 0, 0, 0, 0, 0, 1, 2, 'n'},
		"a credit with a body":    {byte(credit), 0, 0, 0, 0, 0, 0, 0, 1, 0},
		"a cancel with a body":    {byte(cancel), 0, 0, 0, 0, 0, 0, 0, 1, 0},
		"a reply without status":  {byte(reply), 0, 0, 0, 0, 0, 0, 0, 1},
		"a status of states":      {byte(reply), 0, 0, 0, 0, 0, 0, 0, 1, byte(Offered)},
		"an unknown status":       {byte(state), 0, 0, 0, 0, 0, 0, 0, 1, byte(Chosen) + 1},
		"an unknown reply status": {byte(reply), 0, 0, 0, 0, 0, 0, 0, 1, byte(Chosen) + 1},
		"no length of a header":   {byte(headedSend), 0},
		"half a header":           {byte(headedSend), 0, 5, 1, 'k', 0, 1},
		"an empty header":         {byte(headedSend), 0, 0},
		"a header with a rest":    {byte(headedRequest), 0, 5, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0},
		"a header before nothing": {byte(headedRequest), 0, 4, 1, 'k', 0, 0},
	} {
		if err := p.members[0].Receive(1, b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range []Status{OK, Failed, NoHandler, Overloaded, Offered, Chosen} {
		if _, err := parse((&message{kind: state, number: 1, status: s}).appendHead(nil)); err != nil {
			t.Errorf("a state with status %d: %v", s, err)
		}
	}
}
