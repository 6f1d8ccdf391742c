package security

// Random inputs over real sessions: frames of a member behind its handshake, requests of candidates and
// operators, and requests of an agent's clients. There is no coverage guidance, so that many inputs fit in a
// session: the fuzz targets of the packages have that, without a network. A process that speaks as a member may
// disturb the group, and then there is another one. It must not end or fill this process.

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// fuzzer makes inputs from seeds.
type fuzzer struct {
	*mathrand.Rand
	seeds [][]byte
}

func newFuzzer(seeds [][]byte, stream uint64) *fuzzer {
	return &fuzzer{mathrand.New(mathrand.NewPCG(uint64(testutil.Seed.Or(1)), stream)), seeds}
}

// input appends an input to b: a seed with some changes, or now and then random bytes.
func (f *fuzzer) input(b []byte) []byte {
	begin := len(b)
	if f.IntN(16) == 0 {
		for range f.IntN(64) {
			b = append(b, byte(f.Uint32()))
		}
		return b
	}
	b = append(b, f.seeds[f.IntN(len(f.seeds))]...)
	for range f.IntN(5) {
		in := b[begin:]
		if len(in) == 0 {
			break
		}
		i := f.IntN(len(in))
		switch f.IntN(6) {
		case 0:
			in[i] = byte(f.Uint32())
		case 1:
			in[i] ^= 1 << f.IntN(8)
		case 2:
			b = b[:begin+i]
		case 3: // a length of many bytes
			b = append(b[:begin+i], append([]byte{0xff, 0xff, 0xff, 0xff, 0x7f}, in[i:]...)...)
		case 4:
			for k := range min(8, len(in)-i) {
				in[i+k] = 0xff
			}
		case 5: // the rest of another one
			other := f.seeds[f.IntN(len(f.seeds))]
			b = append(b[:begin+i], other[f.IntN(len(other)+1):]...)
		}
	}
	return b
}

// goldenSeeds returns the frames that golden files have.
func goldenSeeds(t *testing.T, files ...string) (all [][]byte) {
	t.Helper()
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if _, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
				if frame, err := hex.DecodeString(text); err == nil && len(frame) < 4096 {
					all = append(all, frame)
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%v have no frames", files)
	}
	return all
}

// loopbackOnly keeps members from dialing the addresses that inputs name.
func loopbackOnly(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(address, "127.0.0.1:") {
		return nil, errors.New("loopback only")
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// sessionSetting is how members prove who they are.
type sessionSetting struct {
	name   string
	secret []byte
	tls    func(path string) *tls.Config
}

func sessionSettings(t *testing.T) []sessionSetting {
	ca := testutil.NewCA(t)
	none := func(string) *tls.Config { return nil }
	var mu sync.Mutex
	issued := make(map[string]*tls.Config)
	return []sessionSetting{
		{"none", nil, none},
		{"secret", []byte("the group's secret"), none},
		{"TLS", nil, func(path string) *tls.Config {
			mu.Lock()
			defer mu.Unlock()
			if issued[path] == nil {
				issued[path] = uriTLS(t, ca, path)
			}
			return issued[path].Clone()
		}},
	}
}

// session is a group of three, a, b and c.
type session struct {
	setting sessionSetting
	members []*pleach.Group
	key     *wire.Key
	attempt uint64
	lacks   atomic.Uint64 // the number of the segment of c that a lacks
	refused *refusedFrames
}

// refusedFrames counts the frames that members log as malformed.
type refusedFrames struct {
	slog.Handler
	n atomic.Int64
}

func (r *refusedFrames) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (r *refusedFrames) Handle(_ context.Context, record slog.Record) error {
	if record.Message == "frame refused" {
		r.n.Add(1)
	}
	return nil
}

func (r *refusedFrames) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *refusedFrames) WithGroup(string) slog.Handler { return r }

func beginSession(t *testing.T, s sessionSetting) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v := &session{
		setting: s, key: wire.NewKey(s.secret, group), attempt: 1 << 32,
		refused: &refusedFrames{Handler: slog.DiscardHandler},
	}
	for _, id := range []string{"a", "b", "c"} {
		c := pleach.Config{
			Group: group, ID: id, Listen: "127.0.0.1:0", Security: pleach.Security{
				Secret: s.secret,
				TLS:    s.tls("pleach/web/" + id),
			}, Network: pleach.Network{Dial: loopbackOnly},
			Detection: pleach.Detection{HeartbeatInterval: 10 * time.Minute, SuspicionTimeout: time.Hour},
			Logger:    slog.New(v.refused),
		}
		var g *pleach.Group
		var err error
		if len(v.members) == 0 {
			g, err = pleach.Create(ctx, c)
		} else {
			g, err = pleach.Join(ctx, c, v.members[0].Self().Address)
		}
		if err != nil {
			t.Fatal(err)
		}
		v.members = append(v.members, g)
		go func() {
			for range g.Messages(context.Background()) { // until the group ends
			}
		}()
	}
	testutil.Eventually(t, "three members", func() bool { return v.members[0].View().Size() == 3 })
	return v
}

func (v *session) end() {
	for _, g := range v.members {
		_ = g.Abort()
	}
}

// healthy reports whether the group is as it began.
func (v *session) healthy() bool {
	a := v.members[0]
	view := a.View()
	return a.Err() == nil && view.Err == nil && view.Size() == 3
}

// connect connects to a as c, or as a client, with a valid handshake.
func (v *session) connect(asClient bool, path string) (net.Conn, wire.Hello, wire.Hello, *wire.Key, error) {
	a, c := v.members[0], v.members[2]
	var h, answer wire.Hello
	raw, err := net.Dial("tcp", a.Self().Address)
	if err != nil {
		return nil, h, answer, nil, err
	}
	_ = raw.(*net.TCPConn).SetLinger(0)
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	conn, key := raw, v.key
	if t := v.setting.tls(path); t != nil {
		t.InsecureSkipVerify = true
		secure := tls.Client(raw, t)
		if err = secure.Handshake(); err != nil {
			_ = raw.Close()
			return nil, h, answer, nil, err
		}
		conn = secure
	}
	h = wire.Hello{Group: group, From: protocol.NoRank, To: protocol.NoRank}
	if !asClient {
		v.attempt++
		self := c.Self()
		h = wire.Hello{
			Group: group, From: protocol.Rank(c.Rank()), To: protocol.Rank(a.Rank()),
			Incarnation: self.Incarnation, Process: self.Nonce, Attempt: v.attempt,
		}
	}
	_, _ = rand.Read(h.Nonce[:])
	h.Code = key.HelloCode(&h)
	answer, err = sayHello(conn, &h)
	if err == nil && answer.Status != wire.Accepted {
		err = errors.New(answer.Status.String())
	}
	if err != nil {
		_ = raw.Close()
	}
	return conn, h, answer, key, err
}

// fuzzFigures counts what a target has done.
type fuzzFigures struct {
	inputs, sessions, groups, refused atomic.Int64
}

// peerBatch is how many frames are written at a time.
const peerBatch = 64

// fuzzPeer has c say anything to a behind its handshake.
func fuzzPeer(t *testing.T, s sessionSetting, n int64, figures *fuzzFigures) {
	f := newFuzzer(peerSeeds(t), 1)
	for figures.inputs.Load() < n {
		v := beginSession(t, s)
		figures.groups.Add(1)
		begun, before := figures.inputs.Load(), v.received()
		for v.healthy() && figures.inputs.Load() < n {
			v.talk(f, n, begun, before, figures)
		}
		v.end()
		figures.refused.Add(v.refused.n.Load())
	}
}

// received returns how many frames a has received of c.
func (v *session) received() int64 {
	all := int64(v.members[0].Status().Stats.FramesReceived)
	return all - int64(v.members[1].Status().Stats.FramesSent)
}

// talk writes frames over one connection until it ends, or the group is another one.
func (v *session) talk(f *fuzzer, n, begun, before int64, figures *fuzzFigures) {
	conn, h, answer, key, err := v.connect(false, "pleach/web/c")
	if err != nil {
		time.Sleep(time.Millisecond) // the view has just changed
		return
	}
	figures.sessions.Add(1)
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.listen(conn)
	}()
	if key != nil {
		code := key.ProofCode(&h, &answer, nil)
		_, _ = conn.Write(wire.AppendFrame(nil, code[:]))
	}
	var frame, out []byte
	for batch := 1; v.healthy() && figures.inputs.Load() < n; batch++ {
		out = out[:0]
		for range peerBatch {
			frame = v.name(f, f.input(frame[:0]))
			out = wire.AppendFrame(out, frame)
		}
		_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write(out); err != nil {
			break
		}
		if batch%16 == 0 {
			figures.inputs.Store(begun + v.received() - before)
		}
		select {
		case <-ended:
			figures.inputs.Store(begun + v.received() - before)
			return
		default:
		}
	}
	figures.inputs.Store(begun + max(0, v.received()-before))
}

// Frames of view changes and of messages to one member have a byte before them, and those of a message
// are of package p2p.
const (
	viewByte   = 0x80
	directByte = 0x83
	p2pHead    = 40
)

// peerSeeds returns frames of all protocols of a member.
func peerSeeds(t *testing.T) (seeds [][]byte) {
	t.Helper()
	seeds = goldenSeeds(t, "internal/machine/stream/testdata/frames.golden")
	for _, frame := range goldenSeeds(t, "internal/machine/membership/testdata/frames.golden") {
		seeds = append(seeds, append([]byte{viewByte}, frame...))
	}
	for _, frame := range goldenSeeds(t, "internal/machine/p2p/testdata/frames.golden") {
		seeds = append(seeds, append([]byte{directByte}, frame...))
	}
	for _, message := range goldenSeeds(t, "internal/machine/unicast/testdata/messages.golden") {
		frame := append([]byte{directByte, 0x81, 2, 3, 0}, make([]byte, p2pHead-4)...) // a whole message
		binary.BigEndian.PutUint32(frame[5:], uint32(len(message)))
		seeds = append(seeds, append(frame, message...))
	}
	return seeds
}

// name puts what a compares first into most frames: the view, or incarnations, and the number that it waits for.
func (v *session) name(f *fuzzer, frame []byte) []byte {
	if len(frame) == 0 || f.IntN(4) == 0 {
		return frame
	}
	a, c := v.members[0], v.members[2].Self()
	switch {
	case frame[0] == viewByte && len(frame) >= 18:
		binary.BigEndian.PutUint64(frame[2:], a.View().Number)
		binary.BigEndian.PutUint64(frame[10:], c.Incarnation)
	case frame[0] == directByte && len(frame) >= 1+p2pHead:
		binary.BigEndian.PutUint64(frame[9:], c.Incarnation)
		binary.BigEndian.PutUint64(frame[17:], a.Self().Incarnation)
		binary.BigEndian.PutUint64(frame[33:], v.lacks.Load()+f.Uint64N(2))
	case frame[0] < viewByte && len(frame) >= 22:
		binary.BigEndian.PutUint32(frame[2:], uint32(c.Rank))
		binary.BigEndian.PutUint64(frame[6:], c.Incarnation)
		if f.IntN(2) == 0 {
			binary.BigEndian.PutUint64(frame[14:], f.Uint64N(256))
		}
	}
	return frame
}

// listen reads what a sends, until the connection ends. Messages to one member are acknowledged.
func (v *session) listen(conn net.Conn) {
	for in := wire.NewReader(conn, 1<<24); ; {
		frame, err := in.Next()
		if err != nil {
			return
		}
		if len(frame) >= 1+p2pHead && frame[0] == directByte {
			v.lacks.Store(binary.BigEndian.Uint64(frame[25:]))
		}
	}
}

// fuzzRequests has a candidate and an operator send any requests, one in each connection.
func fuzzRequests(t *testing.T, s sessionSetting, n int64, figures *fuzzFigures) {
	seeds := goldenSeeds(t, "internal/machine/control/testdata/requests.golden")
	var mu sync.RWMutex // held for writing while the group is replaced
	v := beginSession(t, s)
	figures.groups.Add(1)
	var workers sync.WaitGroup
	for w := range 16 {
		workers.Go(func() {
			f := newFuzzer(seeds, uint64(w))
			for figures.inputs.Load() < n && t.Context().Err() == nil {
				mu.RLock()
				ok := v.healthy()
				if ok {
					v.ask(f, []string{"pleach/web/evil", "pleach-operator/web"}[w%2], figures)
				}
				mu.RUnlock()
				if ok {
					continue
				}
				mu.Lock()
				if !v.healthy() {
					v.end()
					v = beginSession(t, s)
					figures.groups.Add(1)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	v.end()
}

// askPatience is how long a request waits for its reply: some wait for a candidate that does not come.
const askPatience = 20 * time.Millisecond

// ask sends one request.
func (v *session) ask(f *fuzzer, path string, figures *fuzzFigures) {
	conn, h, answer, key, err := v.connect(true, path)
	if err != nil {
		return
	}
	defer conn.Close()
	figures.sessions.Add(1)
	request := f.input(nil)
	if len(request) > 4<<10 {
		request = request[:4<<10]
	}
	var out []byte
	if key != nil {
		code := key.ProofCode(&h, &answer, request)
		out = wire.AppendFrame(out, code[:])
	}
	if _, err := conn.Write(wire.AppendFrame(out, request)); err == nil {
		figures.inputs.Add(1)
		_ = conn.SetReadDeadline(time.Now().Add(askPatience))
		_, _ = conn.Read(make([]byte, 1))
	}
}

// apiSeeds are requests of clients.
func apiSeeds() (seeds [][]byte) {
	add := func(method, target, body string) {
		seeds = append(seeds, fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", method,
			target, len(body), body))
	}
	for _, target := range []string{
		"/healthz", "/readyz", "/metrics", "/v1/status", "/v1/members", "/v1/views", "/v1/tree", "/v1/fleet",
		"/v1/openapi.yaml", "/v1/kv", "/v1/kv/k", "/v1/locks", "/v1/shards/s?key=k", "/ui/",
		"/v1/kv?prefix=a&limit=2", "/v1/messages?topic=t&after=0&timeout=1ms",
	} {
		add("GET", target, "")
	}
	add("PUT", "/v1/kv/k?version=1", "value")
	add("DELETE", "/v1/kv/k?version=0&timeout=1s", "")
	add("POST", "/v1/broadcast?topic=t&wait=stable", "message")
	add("POST", "/v1/send?to=a", "message")
	add("POST", "/v1/query?name=ping&timeout=10ms", "")
	add("POST", "/v1/locks/l?ttl=1s&holder=h", "")
	add("PUT", "/v1/locks/l?handle=1-x", "")
	add("DELETE", "/v1/locks/l?handle=1-x", "")
	add("PUT", "/v1/shards/s?partitions=2", "")
	add("DELETE", "/v1/shards/s", "")
	add("POST", "/v1/files?dir=.&name=n&mode=644", "file")
	seeds = append(seeds,
		[]byte("POST /v1/broadcast?topic=t HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
		[]byte("GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer token\r\nOrigin: http://127.0.0.1\r\n\r\n"))
	return seeds
}

// pipelined is how many HTTP requests are written at a time, and patience how long a client waits for a reply
// that may never come, because its request is not whole, or asks for a stream.
const (
	pipelined = 16
	patience  = 20 * time.Millisecond
)

// fuzzHTTP has clients send any requests to a listener of an agent.
func fuzzHTTP(t *testing.T, dial func() (net.Conn, error), n int64, figures *fuzzFigures) {
	figures.groups.Add(1)
	seeds := apiSeeds()
	var workers sync.WaitGroup
	for w := range 24 {
		workers.Go(func() {
			f := newFuzzer(seeds, uint64(w))
			for figures.inputs.Load() < n && t.Context().Err() == nil {
				if conn, err := dial(); err == nil {
					figures.sessions.Add(1)
					figures.inputs.Add(f.browse(conn))
					_ = conn.Close()
				}
			}
		})
	}
	workers.Wait()
}

// browse sends requests until the other side closes the connection or does not answer, and returns how many
// it has looked at.
func (f *fuzzer) browse(conn net.Conn) (n int64) {
	replies := bufio.NewReader(conn)
	get := &http.Request{Method: "GET"}
	for {
		var out []byte
		for range pipelined {
			if f.IntN(256) == 0 { // the whole request, which mostly ends the connection
				out = f.input(out)
				continue
			}
			out = f.request(out)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write(out); err != nil {
			return n + 1
		}
		for range pipelined {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			response, err := http.ReadResponse(replies, get)
			n++
			if err != nil {
				return n
			}
			if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)); err != nil || response.Close {
				return n
			}
		}
	}
}

// request appends a request whose framing is right: its target, its body or the value of a header are an input.
func (f *fuzzer) request(b []byte) []byte {
	seed := f.seeds[f.IntN(len(f.seeds))]
	head, body, _ := bytes.Cut(seed, []byte("\r\n\r\n"))
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	parts := bytes.Split(line, []byte(" "))
	target, extra := parts[1], []byte(nil)
	one := fuzzer{f.Rand, [][]byte{target}}
	switch f.IntN(4) {
	case 0, 1:
		target = printable(one.input(nil), false)
	case 2:
		one.seeds[0] = append(body, 'x')
		body = one.input(nil)
	case 3:
		one.seeds[0] = []byte([]string{
			"Bearer token", "http://127.0.0.1", "17", "cross-site", "text/event-stream",
			"gzip",
		}[f.IntN(6)])
		name := []string{"Authorization", "Origin", "Last-Event-ID", "Sec-Fetch-Site", "Accept", "Accept-Encoding"}[f.IntN(6)]
		extra = fmt.Appendf(nil, "%s: %s\r\n", name, printable(one.input(nil), true))
	}
	if len(target) == 0 || target[0] != '/' {
		target = append([]byte{'/'}, target...)
	}
	return fmt.Appendf(b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: %d\r\n\r\n%s", parts[0], target, extra,
		len(body), body)
}

// printable replaces the bytes that would end a line of a request, and spaces.
func printable(b []byte, spaces bool) []byte {
	for i, c := range b {
		if c < ' ' || c == 0x7f || c == ' ' && !spaces {
			b[i] = '+'
		}
	}
	return b
}

func TestSecuritySessions(t *testing.T) {
	n := int64(testutil.Inputs.Or(500))
	run := func(name string, target func(t *testing.T, figures *fuzzFigures)) {
		t.Run(name, func(t *testing.T) {
			if only := testutil.Case.Text(); only != "" && !strings.Contains(name, only) {
				t.Skip()
			}
			var figures fuzzFigures
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			goroutines, began := runtime.NumGoroutine(), time.Now()
			over := make(chan struct{})
			most := watchHeap(over)
			target(t, &figures)
			took := time.Since(began).Seconds()
			close(over)
			testutil.Within(20*time.Second, func() bool { return runtime.NumGoroutine() <= goroutines+10 })
			runtime.GC()
			runtime.ReadMemStats(&after)
			fmt.Printf(`{"target":%q,"inputs":%d,"seconds":%.1f,"inputs_s":%.0f,"sessions":%d,"groups":%d,"malformed":%d,"heap_before_mb":%.1f,"heap_most_mb":%.1f,"heap_after_mb":%.1f,"goroutines_left":%d}`+"\n",
				name, figures.inputs.Load(), took, float64(figures.inputs.Load())/took, figures.sessions.Load(),
				figures.groups.Load(), figures.refused.Load(),
				mb(int(before.HeapAlloc)), mb(<-most), mb(int(after.HeapAlloc)), runtime.NumGoroutine()-goroutines)
			if after.HeapAlloc > before.HeapAlloc+64<<20 {
				t.Errorf("%.1f MB have become %.1f MB", mb(int(before.HeapAlloc)), mb(int(after.HeapAlloc)))
			}
			if left := runtime.NumGoroutine() - goroutines; left > 10 {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines are left: %s", left, stacks[:runtime.Stack(stacks, true)])
			}
		})
	}
	for _, s := range sessionSettings(t) {
		run("peer, "+s.name, func(t *testing.T, figures *fuzzFigures) { fuzzPeer(t, s, n, figures) })
		run("request, "+s.name, func(t *testing.T, figures *fuzzFigures) { fuzzRequests(t, s, n, figures) })
	}
	for name, network := range map[string]string{
		"API at the socket": "unix", "API at the loopback address": "api",
		"metrics": "metrics",
	} {
		run(name, func(t *testing.T, figures *fuzzFigures) {
			s := localSetting{name: name}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			h := s.begin(ctx, t)
			fuzzHTTP(t, func() (net.Conn, error) {
				switch network {
				case "api":
					return net.Dial("tcp", h.api)
				case "metrics":
					return net.Dial("tcp", h.metrics)
				}
				return net.Dial("unix", h.socket)
			}, n, figures)
			if _, err := h.locks.Status(t.Context()); err != nil {
				t.Error(err)
			}
			stop()
			<-h.ended
		})
	}
}

// watchHeap returns the most memory of the heap until something is over.
func watchHeap(over <-chan struct{}) <-chan int {
	most := make(chan int, 1)
	go func() {
		highest := uint64(0)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapAlloc)
			select {
			case <-over:
				most <- int(highest)
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return most
}
