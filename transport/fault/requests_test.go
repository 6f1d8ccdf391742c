package fault_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/fault"
)

// innerTransport is an inner transport that keeps what it is told.
type innerTransport struct {
	handler transport.Handler
	peers   []string
}

func (h *innerTransport) Start(handler transport.Handler) error { h.handler = handler; return nil }
func (h *innerTransport) Send(protocol.Rank, []byte) error      { return nil }
func (h *innerTransport) Close() error                          { return nil }
func (h *innerTransport) SetPeer(rank protocol.Rank, address string) {
	h.peers = append(h.peers, fmt.Sprint(rank, "@", address))
}

// echoHandler is a journal that answers clients, when told to.
type echoHandler struct {
	journal
	answer chan struct{}
	asked  atomic.Int32
}

func (e *echoHandler) HandleRequest(_ context.Context, _ transport.Client, request []byte, answer func([]byte)) {
	e.asked.Add(1)
	go func() {
		<-e.answer
		answer(request)
	}()
}

// request sends a request, and returns the replies so far.
func request(h *innerTransport) (answers func() []string) {
	var got []string
	go h.handler.(transport.RequestHandler).HandleRequest(context.Background(), transport.Client{}, []byte("who?"),
		func(b []byte) { got = append(got, string(b)) })
	return func() []string {
		synctest.Wait()
		return got
	}
}

func TestRequestToAFrozenMember(t *testing.T) {
	for _, end := range []string{"thaw", "kill", "close"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, inner := fault.New(seed, fault.Config{}), new(innerTransport)
				m, handler := n.Wrap(0, inner), &echoHandler{answer: make(chan struct{})}
				if err := m.Start(handler); err != nil {
					t.Fatal(err)
				}
				before := request(inner)
				synctest.Wait()
				n.Do(fault.Freeze{Rank: 0})
				close(handler.answer) // Its goroutine is not really frozen.
				during := request(inner)
				if got := slices.Concat(before(), during()); got != nil {
					t.Fatalf("frozen, and answers %q", got)
				}
				var want []string
				switch end {
				case "thaw":
					n.Do(fault.Thaw{Rank: 0})
					want = []string{"who?", "who?"}
				case "kill":
					n.Do(fault.Kill{Rank: 0})
				}
				if got := slices.Concat(before(), during()); end != "close" && !slices.Equal(got, want) {
					t.Errorf("%s: answers %q, want %q", end, got, want)
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				after := request(inner)
				if got := slices.Concat(before(), during(), after()); !slices.Equal(got, want) {
					t.Errorf("closed: answers %q, want %q", got, want)
				}
				if got := int(handler.asked.Load()); got != max(1, len(want)) {
					t.Errorf("%s: the handler was asked %d times", end, got)
				}
			})
		})
	}
}

// What a dead member's goroutines still answer goes nowhere.
func TestRequestToADeadMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, inner := fault.New(seed, fault.Config{}), new(innerTransport)
		handler := &echoHandler{answer: make(chan struct{})}
		if err := n.Wrap(0, inner).Start(handler); err != nil {
			t.Fatal(err)
		}
		answers := request(inner)
		synctest.Wait()
		n.Do(fault.Kill{Rank: 0})
		close(handler.answer)
		if got := answers(); got != nil {
			t.Errorf("dead, and answers %q", got)
		}
	})
}

func TestRequestsNeedARequestHandler(t *testing.T) {
	inner := new(innerTransport)
	m := fault.New(seed, fault.Config{}).Wrap(0, inner)
	if err := m.Start(new(journal)); err != nil {
		t.Fatal(err)
	}
	if _, ok := inner.handler.(transport.RequestHandler); ok {
		t.Error("requests without a request handler")
	}
	m.(transport.AddressBook).SetPeer(3, "there")
	if !slices.Equal(inner.peers, []string{"3@there"}) {
		t.Errorf("peers %q", inner.peers)
	}
}
