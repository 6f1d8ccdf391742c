package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pleach-go/pleach/agent/limit"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// serveUnix returns what dials the Unix socket of a server, and a client of it.
func serveUnix(t *testing.T, s *Server) (dial func() net.Conn, c *http.Client) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.ServeSocket(t.Context(), l) }()
	dial = func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return dial, &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
}

// answer is what a client gets for what it sends.
func answer(t *testing.T, c net.Conn, sends string) (*http.Response, Error) {
	t.Helper()
	if _, err := io.WriteString(c, sends); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var e Error
	_ = json.NewDecoder(response.Body).Decode(&e)
	return response, e
}

// More unfinished requests than the listener has room for, of one user: others of the same user are
// served (case 91).
func TestUnfinishedRequestsKeepNobodyOut(t *testing.T) {
	s := newTestServer(newFake())
	dial, client := serveUnix(t, s)
	for i := range limit.Connections() + 10 {
		head := "GET /v1/status HTTP/1.1\r\nHost: x\r\n" // and no end
		if i%2 == 0 {
			head += "Content-Length: 100\r\n\r\n"
		}
		_, _ = io.WriteString(dial(), head)
	}
	for range 3 {
		response, err := client.Get("http://agent/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("got %s", response.Status)
		}
	}
	if n := s.limits.Refused(reasonConnections); n == 0 {
		t.Error("no connection was counted")
	}
}

// A GET whose body does not arrive ends, whatever its path and its listener.
func TestBodiesOfGetsHaveToArrive(t *testing.T) {
	s := newTestServer(newFake())
	s.limits.bodyTimeout = 100 * time.Millisecond
	dial, _ := serveUnix(t, s)
	for _, path := range []string{"/v1/status", "/metrics", "/healthz", "/none", "/v1/broadcast"} {
		c := dial()
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", path)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A body that is too long for its route is refused before it is read, and bodies of one source have at
// most half of the memory for bodies (case 95).
func TestBodiesInMemoryAreBounded(t *testing.T) {
	s := newTestServer(newFake())
	dial, client := serveUnix(t, s)
	response, e := answer(t, dial(), "PUT /v1/kv/k HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\n")
	if response.StatusCode != http.StatusRequestEntityTooLarge || e.Error == "" || s.limits.bytes.Used() != 0 {
		t.Errorf("got %s, %q", response.Status, e.Error)
	}
	for range 24 {
		_, _ = io.WriteString(dial(), "POST /v1/broadcast HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\n")
	}
	testutil.Within(time.Minute, func() bool { return s.limits.calls.Used() >= 24 })
	if n := s.limits.bytes.Used(); n > maxBytes/2 {
		t.Errorf("%d bytes are in use", n)
	}
	for _, target := range []string{"/v1/broadcast?topic=t", "/v1/send?to=b"} {
		if r, err := client.Post("http://agent"+target, "", strings.NewReader("short")); err != nil ||
			r.StatusCode != http.StatusOK {
			t.Errorf("%s with a short body: %v, %v", target, r, err)
		}
	}
}

// A body without a length counts as the longest one.
func TestBodyWithoutLength(t *testing.T) {
	f := newFake()
	s := newTestServer(f)
	_, client := serveUnix(t, s)
	cursor, err := f.log.Subscribe(retention.Filter{}, "0")
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]int{9: 200, shortBody: 200, shortBody + 1: 200, MaxBody + 1: 413} {
		response, err := client.Post("http://agent/v1/broadcast?topic=t", "", io.MultiReader(strings.NewReader("begin"),
			strings.NewReader(strings.Repeat("x", size-5))))
		if err != nil {
			if want == 200 {
				t.Errorf("%d bytes: %v", size, err)
			}
			continue // the rest was not read
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d bytes: got %d, want %d", size, response.StatusCode, want)
		}
		if want != 200 {
			continue
		}
		if m, err := cursor.Next(t.Context()); err != nil || len(m.Message.Data) != size ||
			!strings.HasPrefix(string(m.Message.Data), "begin") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if n := s.limits.bytes.Used(); n != 0 {
		t.Errorf("%d bytes are in use afterwards", n)
	}
}

// A long body of which the last byte never comes takes nothing of the heap, nor is it taken for whole.
func TestUnfinishedBodiesLeaveNoGarbage(t *testing.T) {
	body := bytes.Repeat([]byte("x"), MaxBody-1)
	for _, length := range []int64{MaxBody, -1} {
		s := newTestServer(newFake())
		r := httptest.NewRequest("POST", "/", io.MultiReader(bytes.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF)))
		r.ContentLength = length
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := s.readBody(httptest.NewRecorder(), r, MaxBody)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.ErrUnexpectedEOF) || s.limits.bytes.Used() != 0 {
			t.Errorf("%v, %d bytes are in use", err, s.limits.bytes.Used())
		}
		if n := after.TotalAlloc - before.TotalAlloc; runtime.GOOS == "linux" && n > 1<<20 {
			t.Errorf("%d bytes of the heap", n)
		}
	}
}

// A query string that would be read differently than it was meant is refused (case 100).
func TestQueriesAreParsedWhole(t *testing.T) {
	f := newFake()
	s := newTestServer(f)
	for _, target := range []string{"/v1/broadcast?topic=a;b", "/v1/broadcast?topic=%zz"} {
		dial, _ := serveUnix(t, s)
		response, e := answer(t, dial(), "POST "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(e.Error, "%3B") {
			t.Errorf("%s: %s, %q", target, response.Status, e.Error)
		}
	}
	if n, _ := f.log.Retained(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// The listeners that a browser reaches answer requests for this host alone (case 100).
func TestOtherHostsAreRefused(t *testing.T) {
	s := newTestServer(newFake())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.ServeMetrics(t.Context(), l, nil, []string{"db1.example"}) }()
	for _, address := range []string{"http://" + l.Addr().String(), serveTCP(t, s)} {
		for host, want := range map[string]int{
			"": 200, "127.0.0.1": 200, "[::1]:9464": 200, "localhost:1": 200,
			"evil.example": 421, "evil.example:9464": 421, "127.0.0.1.evil.example": 421,
		} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", address+"/healthz", nil)
			if err != nil {
				t.Fatal(err)
			}
			if host != "" {
				r.Host = host
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("host %q at %s: got %d, want %d", host, address, response.StatusCode, want)
			}
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+l.Addr().String()+"/healthz", nil)
	r.Host = "DB1.example:9464"
	if response, err := http.DefaultClient.Do(r); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("a name of metrics-hosts: %v, %v", response, err)
	}
}
