package unicast

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// pair is two members whose channels deliver when deliver is called.
type pair struct {
	members  [2]*Machine
	channels [2][][]byte // by receiver
	releases [2][]func()
	served   [2][]Request
	canceled [2][]Caller
	arrivals [2][]string
}

func newPair() *pair {
	p := &pair{}
	for i := range p.members {
		p.members[i] = New(Config{
			Self: protocol.Rank(i), View: viewOf(1, 1, 1), Window: 1000, MaxRequests: 2,
			Post: func(to protocol.Rank, head, body []byte, released func()) {
				p.channels[to] = append(p.channels[to], slices.Concat(head, body))
				p.releases[to] = append(p.releases[to], released)
			},
			Serve:    func(r Request) { p.served[i] = append(p.served[i], r) },
			Canceled: func(c Caller) { p.canceled[i] = append(p.canceled[i], c) },
			State:    func(protocol.Rank, uint64, Status, []byte) {},
			Arrival: func(from protocol.Rank, number uint64, report []byte) {
				p.arrivals[i] = append(p.arrivals[i], fmt.Sprint(from, number, string(report)))
			},
		})
	}
	return p
}

// viewOf is a view of ranks 0, 1, … by their incarnations; of 0, there is none.
func viewOf(number uint64, incarnations ...uint64) membership.View {
	var members []membership.Member
	for r, i := range incarnations {
		if i > 0 {
			members = append(members, membership.Member{Rank: protocol.Rank(r), Incarnation: i})
		}
	}
	return membership.View{
		Number: number, Slots: protocol.Rank(len(incarnations)),
		Members: membership.MembersOf(members...),
	}
}

// deliver delivers all that is on the channels.
func (p *pair) deliver(t *testing.T) {
	t.Helper()
	for to := 0; len(p.channels[0])+len(p.channels[1]) > 0; to = 1 - to {
		messages, releases := p.channels[to], p.releases[to]
		p.channels[to], p.releases[to] = nil, nil
		for i, m := range messages {
			if err := p.members[to].Receive(protocol.Rank(1-to), m); err != nil {
				t.Fatal(err)
			}
			if releases[i] != nil {
				releases[i]()
			}
		}
	}
}

// A program that receives nothing stops its senders, and one that does lets them go on.
func TestWindow(t *testing.T) {
	for _, to := range []protocol.Rank{0, 1} { // a member may send to itself
		p := newPair()
		sent, received := 0, 0
		for range 5 {
			for err := error(nil); err == nil; sent++ {
				if err = p.members[0].Send(to, "", []byte(fmt.Sprintf("%100d", sent))); err != nil && !errors.Is(err, ErrBusy) {
					t.Fatal(err)
				}
				p.deliver(t)
			}
			sent-- // the last one was refused
			if waiting := p.members[to].Pending(); waiting < 1000/164 || waiting > 1000/164+1 {
				t.Fatalf("to %d: %d wait", to, waiting)
			}
			before := p.members[0].Progress()
			for m, ok := p.members[to].Deliver(); ok; m, ok = p.members[to].Deliver() {
				if want := fmt.Sprintf("%100d", received); m.From != 0 || string(m.Data) != want {
					t.Fatalf("to %d: %q from %d, want %q", to, m.Data, m.From, want)
				}
				received++
			}
			p.deliver(t)
			if p.members[0].Progress() == before {
				t.Errorf("to %d: the sender learns nothing", to)
			}
		}
		if sent != received || sent == 0 {
			t.Errorf("to %d: %d sent, %d received", to, sent, received)
		}
	}
}

// A message that is longer than the window goes alone.
func TestLongMessage(t *testing.T) {
	p := newPair()
	if err := p.members[0].Send(1, "", make([]byte, 5000)); err != nil {
		t.Error(err)
	}
	if err := p.members[0].Send(1, "", nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a second one: %v", err)
	}
}

// What a process has sent that has left gives no credit to the next one of its rank.
func TestWindowOfASuccessor(t *testing.T) {
	p := newPair()
	_ = p.members[1].Send(0, "", []byte("of the first"))
	p.deliver(t)
	v := viewOf(2, 1, 2)
	p.members[0].Install(&v)
	if m, ok := p.members[0].Deliver(); !ok || string(m.Data) != "of the first" {
		t.Errorf("%q, %t", m.Data, ok)
	}
	if len(p.channels[1]) > 0 {
		t.Errorf("credit for nothing: %q", p.channels[1])
	}
}

// ends collects how requests end.
type ends []Reply

func (e *ends) end(r Reply) { *e = append(*e, r) }

func TestRequest(t *testing.T) {
	for _, to := range []protocol.Rank{0, 1} {
		p := newPair()
		var got ends
		if _, err := p.members[0].Request(to, "echo", "", []byte("data"), got.end); err != nil {
			t.Fatal(err)
		}
		p.deliver(t)
		if len(p.served[to]) != 1 || p.served[to][0].Name != "echo" || string(p.served[to][0].Data) != "data" {
			t.Fatalf("served %+v", p.served[to])
		}
		p.members[to].Reply(p.served[to][0].Caller, Failed, []byte("no"))
		p.deliver(t)
		if len(got) != 1 || got[0].Status != Failed || string(got[0].Data) != "no" {
			t.Errorf("to %d: %+v", to, got)
		}
		if left := len(p.members[to].served.running) + len(p.members[0].asked.pending); left > 0 {
			t.Errorf("to %d: %d left", to, left)
		}
	}
}

// A request ends with the view in which its receiver is gone, also if another process has
// the receiver's rank there, and so does the handler of a caller that is gone.
func TestRequestEndsWithTheView(t *testing.T) {
	for _, incarnation := range []uint64{0, 2} {
		p := newPair()
		var got ends
		_, _ = p.members[0].Request(1, "", "", nil, got.end)
		_, _ = p.members[1].Request(0, "", "", nil, func(Reply) {})
		p.deliver(t)
		v := viewOf(2, 1, incarnation)
		p.members[0].Install(&v)
		gone := new(GoneError)
		if len(got) != 1 || !errors.As(got[0].Err, &gone) || *gone != (GoneError{1, 2}) {
			t.Errorf("%+v", got)
		}
		if want := []Caller{{1, 1, 1}}; !slices.Equal(p.canceled[0], want) {
			t.Errorf("canceled %v, want %v", p.canceled[0], want)
		}
		p.members[0].Reply(p.canceled[0][0], OK, nil)
		if left := len(p.members[0].served.running) + len(p.channels[1]); left > 0 {
			t.Errorf("%d left", left)
		}
	}
	p := newPair()
	if _, err := p.members[0].Request(7, "", "", nil, nil); !errors.As(err, new(*GoneError)) {
		t.Errorf("to no member: %v", err)
	}
	if err := p.members[0].Send(7, "", nil); !errors.As(err, new(*GoneError)) {
		t.Errorf("to no member: %v", err)
	}
}

// Requests are limited on both sides, and those that wait are served in their turn.
func TestRequestsAreLimited(t *testing.T) {
	p := newPair()
	var got ends
	for i := range 3 {
		if _, err := p.members[0].Request(1, "", "", nil, got.end); (err == nil) != (i < 2) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	p.members[0].config.MaxRequests = 5 // it has other limits than its receiver
	for range 3 {
		_, _ = p.members[0].Request(1, "", "", nil, got.end)
	}
	p.deliver(t)
	if len(p.served[1]) != 2 || len(got) != 1 || got[0].Status != Overloaded {
		t.Fatalf("%d served, %+v", len(p.served[1]), got)
	}
	p.members[0].Cancel(3) // it waits
	p.deliver(t)
	p.members[1].Reply(p.served[1][0].Caller, OK, nil)
	p.members[1].Reply(p.served[1][1].Caller, OK, nil)
	if len(p.served[1]) != 2 {
		t.Error("a reply that has not arrived does not count")
	}
	p.deliver(t)
	if len(p.served[1]) != 3 || p.served[1][2].Number != 4 || len(got) != 3 {
		t.Errorf("served %+v, %+v", p.served[1], got)
	}
}

// A caller that gives up ends the handler's work, and gets nothing more.
func TestCancel(t *testing.T) {
	p := newPair()
	var got ends
	number, _ := p.members[0].Request(1, "", "", nil, got.end)
	p.deliver(t)
	p.members[0].Cancel(number)
	p.deliver(t)
	if len(p.canceled[1]) != 1 {
		t.Errorf("canceled %v", p.canceled[1])
	}
	p.members[1].Reply(p.served[1][0].Caller, OK, nil)
	p.deliver(t)
	if left := len(p.members[1].served.running) + len(got); left > 0 {
		t.Errorf("%d left", left)
	}
	lost := errors.New("no quorum")
	_, _ = p.members[0].Request(1, "", "", nil, got.end)
	p.members[0].FailUnreachable([]protocol.Rank{1}, lost)
	if len(got) != 1 || got[0].Err != lost {
		t.Errorf("%+v", got)
	}
}

// goldenMessages is every kind of message, by names that belong to the protocol.
func goldenMessages() map[string]message {
	return map[string]message{
		"send":           {kind: send, body: []byte("pleach")},
		"send empty":     {kind: send},
		"credit":         {kind: credit, number: 0x1122334455667788},
		"request":        {kind: request, number: 7, name: "ping", body: []byte("data")},
		"request empty":  {kind: request, number: 1},
		"request long":   {kind: request, number: 1, name: strings.Repeat("n", MaxName)},
		"reply":          {kind: reply, number: 7, status: OK, body: []byte("pong")},
		"reply failed":   {kind: reply, number: 7, status: Failed, body: []byte("no")},
		"reply none":     {kind: reply, number: 7, status: NoHandler},
		"reply overload": {kind: reply, number: 7, status: Overloaded},
		"cancel":         {kind: cancel, number: 7},
		"state":          {kind: state, number: 9, status: OK, body: []byte("all")},
		"state failed":   {kind: state, number: 9, status: Failed, body: []byte("no")},
		"arrival":        {kind: arrival, number: 9, body: []byte("report")},
		"send header":    {kind: send, header: "\x01k\x00\x01v", body: []byte("pleach")},
		"request header": {kind: request, header: "\x01k\x00\x00", number: 7, name: "ping", body: []byte("data")},
	}
}

func TestGoldenMessages(t *testing.T) {
	encoded := make(map[string][]byte)
	for name, m := range goldenMessages() {
		encoded[name] = append(m.appendHead(nil), m.body...)
	}
	recorded := testutil.Golden(t, "testdata/messages.golden", encoded)
	for name, want := range goldenMessages() {
		got, err := parse(recorded[name])
		if len(got.body) == 0 {
			got.body = nil
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	testutil.EveryKind(t, recorded, 0, func(b []byte) bool {
		_, err := parse(b)
		return err == nil
	})
}

// A report of an arrival goes to the process that has made the broadcast, not to one that has
// got its rank.
func TestArrivals(t *testing.T) {
	p := newPair()
	p.members[1].SendArrival(0, 1, 7, []byte("by tree"))
	p.members[1].SendArrival(0, 2, 8, []byte("too late"))
	p.members[1].SendArrival(5, 1, 9, []byte("to nobody"))
	p.deliver(t)
	if want := []string{fmt.Sprint(1, uint64(7), "by tree")}; !slices.Equal(p.arrivals[0], want) {
		t.Errorf("%q", p.arrivals[0])
	}
}

// Whatever another member sends, a machine takes it or refuses it, and stays in its limits.
func FuzzReceive(f *testing.F) {
	for _, m := range goldenMessages() {
		f.Add(append(m.appendHead(nil), m.body...), []byte{byte(credit)})
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		p := newPair()
		_ = p.members[0].Send(1, "", []byte("something"))
		_, _ = p.members[0].Request(1, "", "", nil, func(Reply) {})
		for _, b := range [][]byte{one, two, one} {
			if err := p.members[0].Receive(1, bytes.Clone(b)); err != nil && !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
		}
		for _, r := range p.served[0] {
			p.members[0].Reply(r.Caller, OK, nil)
		}
		for ok := true; ok; {
			_, ok = p.members[0].Deliver()
		}
		if w := p.members[0].peer(1); w.granted > w.sent {
			t.Fatalf("%+v", w)
		}
	})
}
