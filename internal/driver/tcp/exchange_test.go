package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// sizes has frames that fit one write, those that no socket takes at once, and
// the edges.
var sizes = []int{0, 1, 3, 64, 1 << 20, 0, 4096, 100_000, 5, wire.MaxFrame, 65_532, 1, 0}

func pattern(seed, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

func exchange(t *testing.T, members []*member) {
	t.Helper()
	var wg sync.WaitGroup
	each := func(f func(from, to int)) {
		for from := range members {
			for to := range members {
				if from != to {
					f(from, to)
				}
			}
		}
	}
	each(func(from, to int) {
		wg.Go(func() {
			for i, size := range sizes {
				if err := sendPatiently(members[from], protocol.Rank(to), pattern(from*100+to*10+i, size)); err != nil {
					t.Error(err)
				}
			}
		})
	})
	wg.Wait()
	each(func(from, to int) {
		eventually(t, fmt.Sprintf("all frames from %d to %d", from, to), func() bool {
			return len(members[to].received(protocol.Rank(from))) == len(sizes)
		})
		for i, size := range sizes {
			if !bytes.Equal(members[to].received(protocol.Rank(from))[i], pattern(from*100+to*10+i, size)) {
				t.Fatalf("frame %d from %d to %d differs", i, from, to)
			}
		}
		want := fmt.Sprintf("up %d", from+1)
		if got := members[to].story(protocol.Rank(from)); got != want {
			// A queue that was full has room again.
			for range 20 {
				want += ", writable"
				if got == want {
					return
				}
			}
			t.Errorf("rank %d was told of rank %d: %s", to, from, got)
		}
	})
	for i, m := range members {
		if s := m.Stats(); s.Connections != len(members)-1 {
			t.Errorf("rank %d: %d connections", i, s.Connections)
		}
	}
}

func TestFramesArriveAsSent(t *testing.T) {
	for _, n := range []int{2, 5} {
		t.Run(fmt.Sprint(n, " members"), func(t *testing.T) {
			exchange(t, startGroup(t, n, Config{}))
		})
	}
}

func TestManySendersOneOrderEach(t *testing.T) {
	m := startGroup(t, 2, Config{})
	const senders, each = 4, 500
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				if err := sendPatiently(m[0], 1, wire.AppendUint32([]byte{byte(s)}, uint32(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "all frames", func() bool { return len(m[1].received(0)) == senders*each })
	var next [senders]uint32
	for _, f := range m[1].received(0) {
		d := wire.NewDecoder(f)
		s, i := d.Uint8(), d.Uint32()
		if i != next[s] {
			t.Fatalf("sender %d: frame %d after %d", s, i, next[s])
		}
		next[s]++
	}
	a, b := m[0].Stats(), m[1].Stats()
	if a.FramesSent != senders*each || b.FramesReceived != senders*each || a.BytesSent != b.BytesReceived ||
		a.Dials != 1 || b.Accepted != 1 {
		t.Errorf("counted %+v and %+v", a, b)
	}
}

func TestConnectionsAreOpenedWhenNeeded(t *testing.T) {
	m := startGroup(t, 3, Config{})
	time.Sleep(20 * time.Millisecond)
	for i := range m {
		if s := m[i].Stats(); s.Dials+s.Accepted != 0 {
			t.Fatalf("rank %d has connected without need: %+v", i, s)
		}
	}
	connect(t, m[0], m[1])
	connect(t, m[1], m[0]) // Over the same one.
	if s := m[0].Stats(); s.Dials != 1 || s.Connections != 1 {
		t.Errorf("rank 0: %+v", s)
	}
	if s := m[1].Stats(); s.Dials != 0 || s.Connections != 1 {
		t.Errorf("rank 1: %+v", s)
	}
	if s := m[2].Stats(); s.Accepted != 0 {
		t.Errorf("rank 2: %+v", s)
	}
}

// Frames sent while both dial are not lost, no Up is taken back, and one
// connection is left.
func TestBothDialAtOnce(t *testing.T) {
	both := 0
	for i := range 100 {
		func() {
			m := startGroup(t, 2, Config{})
			defer m[0].Close()
			defer m[1].Close()
			const each = 20
			var wg sync.WaitGroup
			begin := make(chan struct{})
			for from := range m {
				wg.Go(func() {
					<-begin
					for k := range each {
						mustSend(t, m[from], protocol.Rank(1-from), []byte{byte(k)})
					}
				})
			}
			close(begin)
			wg.Wait()
			for to := range m {
				from := protocol.Rank(1 - to)
				eventually(t, fmt.Sprintf("round %d: all frames at %d", i, to), func() bool {
					return len(m[to].received(from)) == each
				})
				for k, f := range m[to].received(from) {
					if f[0] != byte(k) {
						t.Fatalf("round %d: frame %d at %d is %d", i, k, to, f[0])
					}
				}
			}
			if m[0].Stats().Dials > 0 && m[1].Stats().Dials > 0 {
				both++
			}
			// Attempts that are given up end, and what is left is one
			// connection, the same on both sides.
			eventually(t, "no more handshakes", func() bool { return m[0].Stats().Handshakes+m[1].Stats().Handshakes == 0 })
			for to := range m {
				if s := m[to].Stats(); s.Connections != 1 {
					t.Fatalf("round %d: rank %d has %d connections", i, to, s.Connections)
				}
				if got, want := m[to].story(protocol.Rank(1-to)), fmt.Sprint("up ", 2-to); got != want {
					t.Fatalf("round %d: rank %d was told: %s", i, to, got)
				}
			}
			a, b := m[0].socket(1), m[1].socket(0)
			if a.LocalAddr().String() != b.RemoteAddr().String() || a.RemoteAddr().String() != b.LocalAddr().String() {
				t.Fatalf("round %d: two different connections", i)
			}
		}()
	}
	t.Logf("both dialed in %d of 100 rounds", both)
}

func TestSendRefusesWhatCannotBe(t *testing.T) {
	m := startGroup(t, 2, Config{MaxFrame: 100})
	for _, to := range []protocol.Rank{-1, 0, 2} {
		var send *transport.SendError
		if err := m[0].Send(to, nil); !errors.As(err, &send) || send.To != to {
			t.Errorf("to %d: %v", to, err)
		}
	}
	var size *wire.SizeError
	if err := m[0].Send(1, make([]byte, 101)); !errors.As(err, &size) {
		t.Errorf("too large: %v", err)
	}
	mustSend(t, m[0], 1, make([]byte, 100))
	_ = m[0].Close()
	if err := m[0].Send(1, nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := m[0].Start(m[0].recorder); err == nil {
		t.Error("started after Close")
	}
}

func TestSendDoesNotAllocate(t *testing.T) {
	m := startGroup(t, 2, Config{})
	connect(t, m[0], m[1])
	p := m[0].peer(1)
	p.mu.Lock()
	direct := p.conn.rawConn
	p.mu.Unlock()
	if direct == nil {
		t.Skip("no direct writes here")
	}
	release := m[1].block(0) // Its recorder would allocate.
	defer release()
	frame := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() { mustSend(t, m[0], 1, frame) }); n > 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
