package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// recorder is a handler that keeps everything it is told.
type recorder struct {
	mu     sync.Mutex
	events map[protocol.Rank][]string // "up 7", "down", "writable", in order.
	causes map[protocol.Rank][]error
	frames map[protocol.Rank][][]byte
	busy   map[protocol.Rank]bool // A call is under way.
	fault  string                 // What was told as it must not be.
	hold   map[protocol.Rank]chan struct{}
}

func newRecorder() *recorder {
	return &recorder{
		events: map[protocol.Rank][]string{},
		causes: map[protocol.Rank][]error{},
		frames: map[protocol.Rank][][]byte{},
		busy:   map[protocol.Rank]bool{},
		hold:   map[protocol.Rank]chan struct{}{},
	}
}

// call runs f, and finds out whether another call about this peer is under way.
func (r *recorder) call(peer protocol.Rank, f func()) {
	r.mu.Lock()
	if r.busy[peer] {
		r.fault = fmt.Sprintf("two calls about rank %d at a time", peer)
	}
	r.busy[peer] = true
	hold := r.hold[peer]
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	r.mu.Lock()
	f()
	r.busy[peer] = false
	r.mu.Unlock()
}

func (r *recorder) Receive(from protocol.Rank, frame []byte) {
	r.call(from, func() {
		if !r.up(from) {
			r.fault = fmt.Sprintf("frame of rank %d, which is not up", from)
		}
		r.frames[from] = append(r.frames[from], bytes.Clone(frame))
	})
}

func (r *recorder) Up(peer protocol.Rank, incarnation uint64) {
	r.call(peer, func() {
		if r.up(peer) {
			r.fault = fmt.Sprintf("rank %d is up twice", peer)
		}
		r.events[peer] = append(r.events[peer], fmt.Sprint("up ", incarnation))
	})
}

func (r *recorder) Down(peer protocol.Rank, cause error) {
	r.call(peer, func() {
		r.events[peer] = append(r.events[peer], "down")
		r.causes[peer] = append(r.causes[peer], cause)
	})
}

func (r *recorder) Writable(peer protocol.Rank) {
	r.call(peer, func() { r.events[peer] = append(r.events[peer], "writable") })
}

// up reports whether the last of Up and Down was Up.
func (r *recorder) up(peer protocol.Rank) (up bool) {
	for _, e := range r.events[peer] {
		up = e != "down" && (up || e != "writable")
	}
	return up
}

// story returns what has been told about a peer.
func (r *recorder) story(peer protocol.Rank) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.events[peer], ", ")
}

func (r *recorder) received(from protocol.Rank) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frames[from]
}

// wasDown reports whether a peer was down for a cause, which later ones may have followed.
func (r *recorder) wasDown(peer protocol.Rank, because func(error) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.causes[peer], because)
}

func (r *recorder) lastCause(peer protocol.Rank) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.causes[peer]; len(c) > 0 {
		return c[len(c)-1]
	}
	return nil
}

// block makes calls about a peer wait until the returned function is called.
func (r *recorder) block(peer protocol.Rank) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := make(chan struct{})
	r.hold[peer] = hold
	return sync.OnceFunc(func() {
		r.mu.Lock()
		delete(r.hold, peer)
		r.mu.Unlock()
		close(hold)
	})
}

// member is a transport with its recorder.
type member struct {
	*Transport
	*recorder
}

// listen returns listeners on loopback, and their addresses.
func listen(t testing.TB, n int) ([]net.Listener, []string) {
	t.Helper()
	listeners, addresses := make([]net.Listener, n), make([]string, n)
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i], addresses[i] = l, l.Addr().String()
	}
	return listeners, addresses
}

// start starts one member, and closes it at the end of the test.
func start(t testing.TB, cfg Config) *member {
	t.Helper()
	return startWith(t, cfg, func(r *recorder) transport.Handler { return r })
}

// startWith starts one member whose handler has a recorder in it.
func startWith(t testing.TB, cfg Config, handler func(*recorder) transport.Handler) *member {
	t.Helper()
	if cfg.Group == "" {
		cfg.Group = "test"
	}
	tr, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{tr, newRecorder()}
	if err := tr.Start(handler(m.recorder)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Close()
		if m.fault != "" {
			t.Errorf("rank %d was told: %s", cfg.Rank, m.fault)
		}
	})
	return m
}

// startGroup starts n members with incarnations 1…n, each with the given
// settings.
func startGroup(t testing.TB, n int, cfg Config) []*member {
	t.Helper()
	checkGoroutines(t)
	listeners, addresses := listen(t, n)
	members := make([]*member, n)
	for i := range n {
		cfg.Rank, cfg.Addresses = protocol.Rank(i), addresses
		cfg.Listener, cfg.Incarnation = listeners[i], uint64(i+1)
		members[i] = start(t, cfg)
	}
	return members
}

// kill ends a member as kill -9 would: its peers get resets.
func (m *member) kill() {
	_ = m.listener.Close()
	for p := range m.peers.all() {
		p.mu.Lock()
		if p.conn != nil {
			_ = p.conn.raw.(*net.TCPConn).SetLinger(0)
			p.detach(p.conn, net.ErrClosed)
		}
		p.mu.Unlock()
	}
	_ = m.Close()
}

// socket returns the connection to a peer, which must be up.
func (m *member) socket(peer protocol.Rank) net.Conn {
	p := m.peer(peer)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn.raw
}

// eventually waits for something to become true. It fails with the stacks of all goroutines.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	testutil.Eventually(t, what, f, testutil.Goroutines)
}

// sendPatiently sends a frame as soon as there is room in the queue, up to a minute later.
func sendPatiently(m *member, to protocol.Rank, frame []byte) (err error) {
	testutil.Within(time.Minute, func() bool {
		err = m.Send(to, frame)
		return !errors.Is(err, transport.ErrFull)
	})
	return err
}

// mustSend sends a frame, as soon as there is room in the queue.
func mustSend(t testing.TB, m *member, to protocol.Rank, frame []byte) {
	t.Helper()
	if err := sendPatiently(m, to, frame); err != nil {
		t.Fatal(err)
	}
}

// connect makes sure that there is a connection between two members.
func connect(t testing.TB, a, b *member) {
	t.Helper()
	before := len(b.received(a.cfg.Rank))
	mustSend(t, a, b.cfg.Rank, []byte("first"))
	eventually(t, "first frame", func() bool { return len(b.received(a.cfg.Rank)) > before })
}

// checkGoroutines makes sure that at the end of the test there are no more
// goroutines than now. It must be called before members are started.
func checkGoroutines(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if !testutil.Within(5*time.Second, func() bool { return runtime.NumGoroutine() <= before }) {
			t.Errorf("%d goroutines left over:\n%s", runtime.NumGoroutine()-before, testutil.Goroutines())
		}
	})
}
