package tcp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// startOpen starts a member of an open group, who knows nobody.
func startOpen(t testing.TB, rank protocol.Rank, incarnation uint64, cfg Config) *member {
	t.Helper()
	listeners, _ := listen(t, 1)
	cfg.Open, cfg.Rank, cfg.Incarnation, cfg.Listener = true, rank, incarnation, listeners[0]
	return start(t, cfg)
}

func (m *member) address() string { return m.Addr().String() }

// expectStory waits until a member was told something of a peer, and nothing else.
func expectStory(t testing.TB, m *member, peer protocol.Rank, want string) {
	t.Helper()
	eventually(t, want, func() bool { return m.story(peer) == want })
}

func TestPeersAreAddedLater(t *testing.T) {
	checkGoroutines(t)
	a := startOpen(t, 0, 1, Config{Addresses: []string{"", "127.0.0.1:1"}}) // Who knows how many does not matter.
	b := startOpen(t, 5000, 2, Config{})
	if err := a.Send(5000, nil); !errors.Is(err, transport.ErrDown) {
		t.Errorf("sent to nobody: %v", err)
	}
	a.SetPeer(5000, b.address())
	connect(t, a, b)
	connect(t, b, a) // It knows no address, and needs none.
	a.SetPeer(5000, b.address())
	connect(t, a, b)
	if a.story(5000) != "up 2" || b.story(0) != "up 1" {
		t.Errorf("told %q and %q", a.story(5000), b.story(0))
	}
	for _, nobody := range []protocol.Rank{-1, 0, MaxRanks} {
		a.SetPeer(nobody, b.address())
		if err := a.Send(nobody, nil); err == nil || errors.Is(err, transport.ErrDown) {
			t.Errorf("to %d: %v", nobody, err)
		}
	}
}

func TestJoinerConnectsFirst(t *testing.T) {
	checkGoroutines(t)
	a, b := startOpen(t, 0, 1, Config{}), startOpen(t, 7, 2, Config{})
	b.SetPeer(0, a.address())
	connect(t, b, a)
	connect(t, a, b)
	a.SetPeer(7, b.address())
	connect(t, a, b)
	if got := a.story(7); got != "up 2" {
		t.Errorf("told: %s", got)
	}
	if s := a.Stats(); s.Dials != 0 {
		t.Errorf("counted %+v", s)
	}
	a.SetPeer(7, "127.0.0.1:1") // Now it is one that lives where it is known to.
	expectStory(t, a, 7, "up 2, down")
}

func TestAddressChanges(t *testing.T) {
	for _, open := range []bool{true, false} {
		t.Run(fmt.Sprint("open ", open), func(t *testing.T) {
			checkGoroutines(t)
			listeners, addresses := listen(t, 3)
			begin := func(i int, rank protocol.Rank) *member {
				return start(t, Config{
					Rank: rank, Open: open, Addresses: addresses[:2], Incarnation: uint64(i + 1), Listener: listeners[i],
					BackoffMin: time.Hour, BackoffMax: time.Hour, // What is at a new address is dialed all the same.
				})
			}
			a, old, moved := begin(0, 0), begin(1, 1), begin(2, 1)
			connect(t, a, old)
			release := a.block(1)
			defer release()
			a.SetPeer(1, addresses[2]) // Does not wait for a handler.
			mustSend(t, a, 1, []byte("at once"))
			eventually(t, "frame", func() bool { return len(moved.received(0)) == 1 })
			release()
			expectStory(t, a, 1, "up 2, down, up 3")
			var peer *PeerError
			if cause := a.lastCause(1); !errors.Is(cause, ErrMoved) || !errors.As(cause, &peer) || peer.Address != addresses[1] {
				t.Errorf("down because of %v", cause)
			}
			expectStory(t, old, 0, "up 1, down")
			if len(old.received(0)) != 1 {
				t.Error("the old one got what was sent to the new")
			}
		})
	}
}

func TestPeerIsRemoved(t *testing.T) {
	checkGoroutines(t)
	a, b := startOpen(t, 0, 1, Config{}), startOpen(t, 1, 2, Config{})
	a.SetPeer(1, b.address())
	connect(t, a, b)
	a.SetPeer(1, "")
	expectStory(t, a, 1, "up 2, down")
	expectStory(t, b, 0, "up 1, down")
	time.Sleep(30 * time.Millisecond) // Longer than the backoff.
	if err := a.Send(1, nil); !errors.Is(err, transport.ErrDown) {
		t.Errorf("sent to nobody: %v", err)
	}
	if s := a.Stats(); s.Dials != 1 || s.Connections != 0 {
		t.Errorf("counted %+v", s)
	}
	a.SetPeer(1, b.address())
	connect(t, a, b)
	expectStory(t, a, 1, "up 2, down, up 2")
}

// A process that takes a rank over may connect before its address is told. Its
// connection stays, and that of the process before it does not.
func TestNewcomerKeepsItsConnection(t *testing.T) {
	checkGoroutines(t)
	a, old, newer := startOpen(t, 0, 1, Config{}), startOpen(t, 1, 2, Config{}), startOpen(t, 1, 3, Config{})
	a.SetPeer(1, old.address())
	connect(t, a, old)
	newer.SetPeer(0, a.address())
	connect(t, newer, a)
	expectStory(t, a, 1, "up 2, down, up 3")
	a.SetPeer(1, newer.address())
	connect(t, a, newer)
	connect(t, newer, a)
	if a.story(1) != "up 2, down, up 3" || newer.story(0) != "up 1" {
		t.Errorf("told %q and %q", a.story(1), newer.story(0))
	}
	a.SetPeer(1, old.address())
	expectStory(t, a, 1, "up 2, down, up 3, down")
}

func TestAddressChangesWhileDialing(t *testing.T) {
	checkGoroutines(t)
	mute, addresses := listen(t, 1) // It accepts, and says nothing.
	defer mute[0].Close()
	a := startOpen(t, 0, 1, Config{MaxFrame: 1000, QueueBytes: 1004})
	b := startOpen(t, 1, 2, Config{})
	a.SetPeer(1, addresses[0])
	mustSend(t, a, 1, make([]byte, 1000))
	if err := a.Send(1, nil); !errors.Is(err, transport.ErrFull) {
		t.Fatal(err)
	}
	a.SetPeer(1, b.address())
	mustSend(t, a, 1, []byte("here"))
	eventually(t, "frame", func() bool { return len(b.received(0)) == 1 })
	expectStory(t, a, 1, "down, writable, up 2")
	var peer *PeerError
	if cause := a.lastCause(1); !errors.Is(cause, ErrMoved) || !errors.As(cause, &peer) || peer.Address != addresses[0] {
		t.Errorf("down because of %v", cause)
	}
	if got := string(b.received(0)[0]); got != "here" {
		t.Errorf("got %q", got)
	}

	a.SetPeer(1, addresses[0])
	expectStory(t, a, 1, "down, writable, up 2, down")
	mustSend(t, a, 1, []byte("lost"))
	a.SetPeer(1, "")
	expectStory(t, a, 1, "down, writable, up 2, down, down")
	if err := a.Send(1, nil); !errors.Is(err, transport.ErrDown) {
		t.Errorf("sent to nobody: %v", err)
	}
}

func TestOpenAndClosedRefuseEachOther(t *testing.T) {
	closed := startGroup(t, 2, Config{})
	open := startOpen(t, 1, 9, Config{})
	open.SetPeer(0, closed[0].address())
	mustSend(t, open, 0, nil)
	eventually(t, "down", func() bool { return open.lastCause(0) != nil })
	if err := open.lastCause(0); !errors.Is(err, ErrMismatch) {
		t.Errorf("down because of %v", err)
	}
	// A rank that cannot be is one in an open group, too.
	c := dialHello(t, open, wire.Hello{From: MaxRanks, To: 1, Incarnation: 1, Attempt: 1})
	if answer, err := c.hello(); err != nil || answer.Status != wire.OtherRank {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if closed[0].story(1) != "" {
		t.Error("the handler was told of an unknown process")
	}
}

// However often a rank changes hands while others send to it, the handler is told
// a consistent story, nobody gets a frame twice or late, and in the end the last
// one is reached..
func TestAddressChangesAllTheTime(t *testing.T) {
	checkGoroutines(t)
	a := startOpen(t, 0, 1, Config{BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond})
	homes := []*member{startOpen(t, 1, 2, Config{}), startOpen(t, 1, 2, Config{})}
	addresses := []string{homes[0].address(), homes[1].address(), "", "127.0.0.1:1"}
	end := time.Now().Add(300 * time.Millisecond)
	var wg sync.WaitGroup
	wg.Go(func() {
		pace := time.Tick(10 * time.Microsecond)
		for i := uint32(0); time.Now().Before(end); i++ {
			_ = a.Send(1, wire.AppendUint32(nil, i))
			<-pace
		}
	})
	for seed := range uint64(2) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, seed))
			for time.Now().Before(end) {
				a.SetPeer(1, addresses[random.IntN(len(addresses))])
				time.Sleep(time.Duration(random.Int64N(int64(time.Millisecond))))
			}
		})
	}
	wg.Wait()
	for i, h := range homes {
		last := -1
		for _, f := range h.received(0) {
			d := wire.NewDecoder(f)
			if n := int(d.Uint32()); n <= last {
				t.Fatalf("home %d: frame %d after %d", i, n, last)
			} else {
				last = n
			}
		}
		t.Logf("home %d got %d frames", i, len(h.received(0)))
	}
	a.SetPeer(1, addresses[1])
	eventually(t, "last frame", func() bool {
		_ = a.Send(1, []byte("the last"))
		got := homes[1].received(0)
		return len(got) > 0 && string(got[len(got)-1]) == "the last"
	})
	if !strings.Contains(a.story(1), "down") {
		t.Error("it never moved; the test is no test")
	}
}
