package tcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// requestHandler is a recorder that answers clients.
type requestHandler struct {
	*recorder
	handle func(request []byte, answer func([]byte))
}

func (k requestHandler) HandleRequest(_ context.Context, _ transport.Client, request []byte, answer func([]byte)) {
	k.handle(request, answer)
}

func echo(request []byte, answer func([]byte)) { answer(append([]byte("re: "), request...)) }

// startWithRequests starts the first member of an open group, who answers clients.
func startWithRequests(t testing.TB, cfg Config, handle func([]byte, func([]byte))) *member {
	t.Helper()
	checkGoroutines(t)
	listeners, _ := listen(t, 1)
	cfg.Open, cfg.Listener = true, listeners[0]
	return startWith(t, cfg, func(r *recorder) transport.Handler { return requestHandler{r, handle} })
}

// ask asks a member as a client of its group.
func ask(t testing.TB, m *member, cfg Config, request []byte) ([]byte, error) {
	t.Helper()
	cfg.Group = "test"
	answer, err := Request(t.Context(), cfg, m.address(), request)
	var failed *RequestError
	if err != nil && (!errors.As(err, &failed) || failed.Address != m.address()) {
		t.Errorf("untyped error %T: %v", err, err)
	}
	return answer, err
}

func TestRequestIsAnswered(t *testing.T) {
	m := startWithRequests(t, Config{}, echo)
	for _, size := range []int{0, 1, MaxRequest} {
		request := pattern(size, size)
		answer, err := ask(t, m, Config{}, request)
		if err != nil || !bytes.Equal(answer, append([]byte("re: "), request...)) {
			t.Errorf("request of %d bytes: answer of %d, %v", size, len(answer), err)
		}
	}
	eventually(t, "end", func() bool { return m.Stats().Clients == 0 })
	if s := m.Stats(); s.Requests != 3 || s.Connections != 0 || s.Refused != 0 || s.Accepted != 0 {
		t.Errorf("counted %+v", s)
	}
	if m.story(protocol.NoRank) != "" {
		t.Error("the handler was told of a client as of a peer")
	}
}

func TestRequestToAStaticGroupIsAnswered(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 1)
	m := startWith(t, Config{Addresses: addresses, Listener: listeners[0]},
		func(r *recorder) transport.Handler { return requestHandler{r, echo} })
	if answer, err := ask(t, m, Config{}, nil); err != nil || string(answer) != "re: " {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestAnswersOfAllSizes(t *testing.T) {
	sizes := map[string]int{"none": 0, "largest": wire.MaxFrame, "too large": wire.MaxFrame + 1}
	m := startWithRequests(t, Config{}, func(request []byte, answer func([]byte)) {
		answer(make([]byte, sizes[string(request)]))
		answer([]byte("the second does not count"))
	})
	for name, size := range sizes {
		answer, err := ask(t, m, Config{}, []byte(name))
		if size > wire.MaxFrame {
			if !errors.Is(err, ErrUnanswered) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || len(answer) != size {
			t.Errorf("%s: %d bytes, %v", name, len(answer), err)
		}
	}
	var size *wire.SizeError
	if _, err := ask(t, m, Config{MaxFrame: 1000}, []byte("largest")); !errors.As(err, &size) {
		t.Errorf("over the client's limit: %v", err)
	}
}

// hold is a request handler that answers when told to.
type hold struct {
	mu      sync.Mutex
	answers []func([]byte)
}

func (h *hold) handle(_ []byte, answer func([]byte)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, answer)
}

func (h *hold) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.answers)
}

func (h *hold) answerAll(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, answer := range h.answers {
		answer(b)
	}
}

func TestHerdIsAnsweredLate(t *testing.T) {
	var door hold
	m := startWithRequests(t, Config{}, door.handle)
	const clients = 300
	view := pattern(1, 50_000)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			answer, err := ask(t, m, Config{HandshakeTimeout: time.Minute, DialTimeout: time.Minute}, fmt.Append(nil, i))
			if err != nil || !bytes.Equal(answer, view) {
				t.Errorf("client %d: %d bytes, %v", i, len(answer), err)
			}
		})
	}
	eventually(t, "all clients", func() bool { return door.waiting() == clients })
	if n := m.Stats().Clients; n != clients {
		t.Errorf("%d clients at a time", n)
	}
	door.answerAll(view)
	wg.Wait()
	eventually(t, "end", func() bool { return m.Stats().Clients == 0 })
}

func TestRequestsThatAreNeverAnswered(t *testing.T) {
	var door hold
	m := startWithRequests(t, Config{RequestTimeout: 50 * time.Millisecond}, door.handle)
	if _, err := ask(t, m, Config{}, nil); !errors.Is(err, ErrUnanswered) {
		t.Errorf("the member's time is over: %v", err)
	}
	patient := startWithRequests(t, Config{}, door.handle)
	if _, err := ask(t, patient, Config{RequestTimeout: 50 * time.Millisecond}, nil); !errors.Is(err,
		os.ErrDeadlineExceeded) {
		t.Errorf("the client's time is over: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Request(ctx, Config{Group: "test"}, patient.address(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	// Who hangs up is not waited for, and a late answer does no harm.
	eventually(t, "end", func() bool { return m.Stats().Clients+patient.Stats().Clients == 0 })
	if n := door.waiting(); n != 3 {
		t.Errorf("%d clients have asked", n)
	}
	door.answerAll([]byte("late"))
}

func TestClientsThatAreRefused(t *testing.T) {
	m := startWithRequests(t, Config{}, echo)
	_, err := Request(t.Context(), Config{Group: "other"}, m.address(), nil)
	if !errors.Is(err, ErrGroup) || !errors.Is(err, ErrHello) {
		t.Errorf("of another group: %v", err)
	}
	if _, err := ask(t, m, Config{}, make([]byte, MaxRequest+1)); !errors.Is(err, ErrFrameSize) {
		t.Errorf("too long a request: %v", err)
	}
	if _, err := ask(t, startOpen(t, 3, 1, Config{}), Config{}, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no request handler: %v", err)
	}
	// The transport reads the bound with the lock that Stats takes, too.
	limit := func(waiting int) {
		m.Stats()
		m.gate.Waiting = waiting
		m.Stats()
	}
	limit(0)
	if _, err := ask(t, m, Config{}, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("too many: %v", err)
	}
	limit(maxClients)
	eventually(t, "end", func() bool { return m.Stats().Clients == 0 })
	if _, err := ask(t, m, Config{}, nil); err != nil {
		t.Error(err)
	}
	_ = m.Close()
	var op *net.OpError
	if _, err := ask(t, m, Config{}, nil); !errors.As(err, &op) {
		t.Errorf("nobody there: %v", err)
	}
}

// A host whose requests are answered may ask as often as it likes.
func TestAnsweredRequestsCostNothing(t *testing.T) {
	m := startWithRequests(t, Config{}, echo)
	for i := range 800 {
		if _, err := ask(t, m, Config{}, nil); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
}

// A client that has proved that it is of the group costs nothing either, although it does not wait
// for answers.
func TestClientsWithTheSecretMayLeave(t *testing.T) {
	came := make(chan struct{}, 1)
	m := startWithRequests(t, Config{Secret: secret}, func([]byte, func([]byte)) { came <- struct{}{} })
	for i := range 800 {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := Request(ctx, Config{Group: "test", Secret: secret}, m.address(), nil)
			done <- err
		}()
		select {
		case <-came:
		case err := <-done:
			t.Fatalf("request %d ended before it arrived: %v", i, err)
		}
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("request %d: %v", i, err)
		}
	}
}

// A client whose certificate the program refuses is told so, and its request is not heard.
func TestClientWithAnotherCertificateIsTold(t *testing.T) {
	verify := func(c Claim) error {
		if c.Rank == protocol.NoRank {
			return errors.New("no clients")
		}
		return nil
	}
	m := startWithRequests(t, Config{Verify: verify}, echo)
	if answer, err := ask(t, m, Config{}, nil); !errors.Is(err, ErrCertificate) {
		t.Errorf("answer %q, %v", answer, err)
	}
}

// A reply that is longer than a frame may be is not sent, and the operator learns why.
func TestReplyThatIsTooLongIsLogged(t *testing.T) {
	var log testutil.LogBuffer
	m := startWithRequests(t, Config{MaxFrame: 100, Logger: log.Logger()},
		func(_ []byte, answer func([]byte)) { answer(make([]byte, 101)) })
	if answer, err := ask(t, m, Config{}, nil); !errors.Is(err, ErrUnanswered) {
		t.Errorf("answer of %d bytes, %v", len(answer), err)
	}
	eventually(t, "a line", func() bool { return len(log.Lines("level=WARN msg=\"client is not answered\"")) == 1 })
}

func TestClientsThatMisbehave(t *testing.T) {
	var asked atomic.Int32
	m := startWithRequests(t, Config{HandshakeTimeout: 200 * time.Millisecond},
		func([]byte, func([]byte)) { asked.Add(1) })
	client := wire.Hello{From: protocol.NoRank, To: protocol.NoRank}
	for name, then := range map[string][]byte{
		"request too long": {0, 0, 16, 1},
		"not a frame":      []byte("GET / HTTP/1.1\r\n"),
		"half a request":   {0, 0, 0, 8, 1, 2},
		"nothing":          nil,
	} {
		c := dialHello(t, m, client)
		if answer, err := c.hello(); err != nil || answer.Status != wire.Accepted || answer.To != protocol.NoRank {
			t.Fatalf("%s: %+v, %v", name, answer, err)
		}
		_, _ = c.Write(then)
		expectClosed(t, c)
	}
	eventually(t, "refusals", func() bool { return m.Stats().Refused == 4 && m.Stats().Clients == 0 })
	if n := asked.Load(); n != 0 {
		t.Errorf("%d of them got through", n)
	}
	// Who does not wait for its answer is shown the door, too.
	c := dialAs(t, m, client)
	_, _ = c.Write(wire.AppendFrame(nil, []byte("a request")))
	eventually(t, "request", func() bool { return asked.Load() == 1 })
	_, _ = c.Write([]byte("and more"))
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("answer %x without one", b)
	}
	eventually(t, "end", func() bool { return m.Stats().Clients == 0 })
}

func TestCloseWithClientsWaiting(t *testing.T) {
	var door hold
	m := startWithRequests(t, Config{}, door.handle)
	const clients = 20
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			if answer, err := ask(t, m, Config{}, nil); !errors.Is(err, ErrUnanswered) {
				t.Errorf("closed, and %q, %v", answer, err)
			}
		})
	}
	eventually(t, "all clients", func() bool { return door.waiting() == clients })
	_ = m.Close()
	door.answerAll([]byte("too late"))
	wg.Wait()
	if n := m.Stats().Clients; n != 0 {
		t.Errorf("%d clients are left", n)
	}
}

func TestRequestsUnderTLS(t *testing.T) {
	ca := testutil.NewCA(t)
	var door atomic.Int32
	m := startWithRequests(t, Config{TLS: ca.Config(t, ca)}, func(request []byte, answer func([]byte)) {
		door.Add(1)
		time.AfterFunc(10*time.Millisecond, func() { answer(pattern(1, 100_000)) })
	})
	answer, err := ask(t, m, Config{TLS: ca.Config(t, ca)}, []byte("x"))
	if err != nil || !bytes.Equal(answer, pattern(1, 100_000)) {
		t.Errorf("%d bytes, %v", len(answer), err)
	}
	none := ca.Config(t, ca)
	none.Certificates = nil
	for name, cfg := range map[string]*tls.Config{
		"plain":          nil,
		"none":           none,
		"signed by self": ca.Config(t, new(testutil.CA)),
		"of another CA":  ca.Config(t, testutil.NewCA(t)),
		"without CA":     {},
	} {
		if answer, err := ask(t, m, Config{TLS: cfg}, []byte("x")); err == nil {
			t.Errorf("%s: answer %q", name, answer)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	if n := door.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	// A client does not talk to an unknown process, either.
	plain := startWithRequests(t, Config{}, echo)
	other := testutil.NewCA(t)
	foreign := startWithRequests(t, Config{TLS: other.Config(t, other)}, echo)
	for _, m := range []*member{plain, foreign} {
		if answer, err := ask(t, m, Config{TLS: ca.Config(t, ca), HandshakeTimeout: time.Second}, nil); err == nil {
			t.Errorf("answer %q of an unknown process", answer)
		}
	}
}

// FuzzCaller lets somebody connect and say anything. What reaches the handler
// is what a client of this group has asked, and nobody else's.
func FuzzCaller(f *testing.F) {
	say := func(h wire.Hello, request []byte) []byte {
		return wire.AppendFrame(wire.AppendFrame(nil, wire.AppendHello(nil, &h)), request)
	}
	client := wire.Hello{Group: "test", From: protocol.NoRank, To: protocol.NoRank}
	f.Add(say(client, []byte("let me in")))
	f.Add(say(client, make([]byte, MaxRequest+1)))
	f.Add(say(wire.Hello{Group: "test", From: 1, Incarnation: 1, Attempt: 1}, []byte("frame")))
	f.Add(say(wire.Hello{Group: "other", From: protocol.NoRank, To: protocol.NoRank}, nil))
	var asked []byte
	listeners, _ := listen(f, 1)
	m := startWith(f, Config{Open: true, Listener: listeners[0]}, func(r *recorder) transport.Handler {
		return requestHandler{r, func(request []byte, answer func([]byte)) {
			asked = append([]byte{'!'}, request...)
			answer(nil)
		}}
	})
	f.Fuzz(func(t *testing.T, said []byte) {
		asked = nil
		c := newHandshakeConn(m.ctx, &m.cfg, speaker{Reader: bytes.NewReader(said)})
		m.Transport.receive(c, c.accept(m.ctx, &m.cfg))
		if want := asks(said); !bytes.Equal(asked, want) {
			t.Errorf("%x: handler was asked %q, want %q", said, asked, want)
		}
	})
}

// speaker is a connection whose other side says something, and takes everything.
type speaker struct {
	io.Reader
	net.Conn // nil: the rest is not used.
}

func (s speaker) Read(b []byte) (int, error)    { return s.Reader.Read(b) }
func (speaker) Write(b []byte) (int, error)     { return len(b), nil }
func (speaker) Close() error                    { return nil }
func (speaker) SetDeadline(time.Time) error     { return nil }
func (speaker) SetReadDeadline(time.Time) error { return nil }
func (speaker) RemoteAddr() net.Addr            { return new(net.TCPAddr) }

// asks returns what a client's bytes ask, behind a mark.
func asks(said []byte) []byte {
	in := wire.NewReader(bytes.NewReader(said), MaxRequest)
	body, err := in.Next()
	if err != nil {
		return nil
	}
	h, err := wire.DecodeHello(body)
	if err != nil || h.Group != "test" || h.From != protocol.NoRank || h.Code != (wire.Code{}) {
		return nil
	}
	request, err := in.Next()
	if err != nil {
		return nil
	}
	return append([]byte{'!'}, request...)
}
