package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/limit"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// fakeAgent answers everything, or always with an error.
type fakeAgent struct {
	err  error
	log  *retention.Log
	hold chan struct{} // Send waits for it, if there is one

	events *retention.Log
}

var (
	some   = MemberRef{1, "b"}
	moment = time.Unix(1, 0)
)

func (f *fakeAgent) Last(context.Context, string) (retention.Message, bool) {
	return retention.Message{Topic: "old", Data: []byte("value")}, true
}

func (f *fakeAgent) Broadcast(_ context.Context, topic string, data []byte, stable bool) (*Receipt, error) {
	f.log.Add(retention.Message{Topic: topic, Data: data, FromID: "a", Time: moment})
	return &Receipt{View: 3, Stable: stable, Members: []MemberRef{some}}, f.err
}

func (f *fakeAgent) Send(context.Context, string, []byte) (*Sent, error) {
	if f.hold != nil {
		<-f.hold
	}
	return &Sent{View: 3, To: some}, f.err
}

func (f *fakeAgent) Query(_ context.Context, name string, _ []byte) (*Answers, error) {
	return &Answers{
		Name: name, View: 3, Answers: []Answer{{"fra", some, NewPayload([]byte{0xff}), "broken", 0.5}},
		Unanswered: []Unanswered{{"fra", some, "it is gone"}}, UnansweredZones: []UnansweredZone{{"iad", "no delegate"}},
	}, f.err
}

func (f *fakeAgent) QueryFleet(ctx context.Context, name string, data []byte) (*Answers, error) {
	return f.Query(ctx, name, data)
}

func (f *fakeAgent) BroadcastFleet(ctx context.Context, topic string, data []byte, _ bool) (*Receipt, error) {
	f.log.Add(retention.Message{Topic: topic, Data: data, FromID: "a", Fleet: true, Zone: "fra", From: -1, Time: moment})
	return &Receipt{View: 3, Members: []MemberRef{}, Zones: 3}, f.err
}

func (f *fakeAgent) Fleet(context.Context) (*Fleet, error) {
	s := new(Fleet)
	fill(reflect.ValueOf(s).Elem())
	return s, f.err
}

func (f *fakeAgent) Copy(_ context.Context, u Upload, report func(transfer.Progress)) (transfer.Result, error) {
	if f.err == nil {
		report(transfer.Progress{Sent: 1, Total: 2, Settled: 3, Members: 4})
	}
	r := transfer.Result{
		Name: u.Name, Dir: u.Dir,
		Members: []transfer.MemberResult{{Rank: 1, ID: "b", Outcome: transfer.Failed, Error: "full"}},
	}
	return r, f.err
}

func (f *fakeAgent) Members() (*Members, error) {
	return &Members{View: 3, Slots: 2, Members: []Member{{
		MemberRef: some, Address: "h:1", FailureDomain: "z", Incarnation: 2, Meta: "x=1", State: Suspected, Since: moment,
		SuspectedSince: moment, Cause: "silent",
	}}}, f.err
}

func (f *fakeAgent) Status() (*Status, error) {
	s := new(Status)
	fill(reflect.ValueOf(s).Elem())
	s.Quorum.Arbiter.State = pleach.ArbiterNone // one of those that the description has
	return s, f.err
}

func (f *fakeAgent) Views() (*Views, error) {
	v := new(Views)
	fill(reflect.ValueOf(v).Elem())
	return v, f.err
}

func (f *fakeAgent) Tree() (*Tree, error) {
	return &Tree{View: 3, Edges: []TreeEdge{{Rank: 1, Avoided: true}}}, f.err
}

// fill makes sure that no field is left out for being zero.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(moment))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.String:
		v.SetString("text")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanUint():
		v.SetUint(1)
	case v.CanInt():
		v.SetInt(1)
	case v.CanFloat():
		v.SetFloat(1)
	}
}

func (f *fakeAgent) Events() *retention.Log { return f.events }

func (f *fakeAgent) Ready() error { return f.err }

func (f *fakeAgent) Metrics(func(string) uint64) http.Handler { return http.NotFoundHandler() }

func (f *fakeAgent) Messages() *retention.Log { return f.log }

func newFake() *fakeAgent {
	return &fakeAgent{
		log:    retention.New("e", retention.Limits{Messages: 2, Bytes: 1 << 20}),
		events: retention.New("g", retention.Limits{Messages: 2, Bytes: 1 << 20}),
	}
}

func newTestServer(f *fakeAgent) *Server { return NewServer(f, slog.New(slog.DiscardHandler)) }

func request(s *Server, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl -d says
	s.handler().ServeHTTP(w, r)
	return w
}

// handler is that of a Unix socket.
func (s *Server) handler() http.Handler { return s.inTime(s.socketHandler()) }

// parameters are what a route needs.
var parameters = map[string]string{
	"/v1/send": "?to=b", "/v1/query": "?name=ping",
	"/v1/broadcast": "?topic=t&wait=stable", filesPath: "?dir=d&name=n&mode=640&rate=1000", locksPath: "?token=1",
	"/v1/shards/{name}": "?partitions=1", "/v1/rollouts/{id}": "?do=pause",
}

// bodies are those that a route needs. Others take any.
var bodies = map[string]string{"/v1/rollouts": `{"topic": "t", "data": "x"}`}

// Every JSON reply, and every error, is as it is described.
func TestRepliesAreAsDescribed(t *testing.T) {
	d := readDescription(t)
	for _, failing := range []error{nil, ErrNotMember} {
		f := newFake()
		f.err = failing
		s := newTestServer(f)
		for _, r := range routes {
			if r.path == "/v1/messages" || r.path == "/v1/events" || r.path == "/v1/watch" || r.path == "/metrics" ||
				r.method == "GET" && r.path == "/v1/shards/{name}" {
				continue // see TestEvents, TestWatchIsAStream, TestShardsAreAsDescribed, and TestAgents of package agent
			}
			status := "200"
			w := request(s, r.method, r.path+parameters[r.path], cmp.Or(bodies[r.path], "x"))
			kind := w.Header().Get("Content-Type")
			if failing != nil && w.Code != http.StatusOK {
				status = "default"
				if w.Code != http.StatusServiceUnavailable {
					t.Errorf("%s: status %d", r.path, w.Code)
				}
			} else if w.Code != http.StatusOK {
				t.Errorf("%s: status %d: %s", r.path, w.Code, w.Body)
			}
			if kind != "application/json" {
				continue
			}
			content := d.Paths[strings.Replace(r.path,
				"...}", "}", 1)][strings.ToLower(r.method)].Responses[status].Content["application/json"].Schema
			if status == "default" {
				content = schema{Ref: "#/components/schemas/Error"}
			}
			for _, c := range d.check(&content, "", decoded(t, w.Body.Bytes())) {
				t.Errorf("%s: %s", r.path, c)
			}
		}
	}
}

// The lines of a copy are as they are described.
func TestCopyEvents(t *testing.T) {
	w := request(newTestServer(newFake()), "POST", "/v1/files?dir=d&name=n", "x")
	lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	if len(lines) != 2 || w.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("got %q", lines)
	}
	d := readDescription(t)
	for _, line := range lines {
		for _, c := range d.check(&schema{Ref: "/CopyEvent"}, "", decoded(t, []byte(line))) {
			t.Error(c)
		}
	}
}

func decoded(t *testing.T, b []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(b, &value); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return value
}

func TestStatusOfErrors(t *testing.T) {
	f := newFake()
	s := newTestServer(f)
	for _, c := range []struct {
		err    error
		target string
		body   string
		want   int
	}{
		{nil, "/v1/broadcast?wait=x", "", 400},
		{nil, "/v1/broadcast?timeout=x", "", 400},
		{nil, "/v1/broadcast?timeout=11m", "", 400},
		{nil, "/v1/send", "", 400},
		{nil, "/v1/query", "", 400},
		{nil, "/v1/files?dir=d", "", 400},
		{nil, "/v1/files?dir=d&name=n&mode=4755", "", 400},
		{nil, "/v1/files?dir=d&name=n&rate=0", "", 400},
		{nil, "/v1/broadcast", strings.Repeat("x", MaxBody+1), 413},
		{nil, "/v1/none", "", 404},
		{nil, "/v1/status", "", 405},
		{&pleach.GoneError{}, "/v1/send?to=x", "", 404},
		{&pleach.QuorumError{}, "/v1/broadcast", "", 503},
		{&pleach.TopicError{}, "/v1/broadcast", "", 400},
		{&pleach.UnstableError{Unanswered: []int{3}, Err: context.DeadlineExceeded}, "/v1/broadcast?wait=stable", "", 504},
		{
			&pleach.UnconfirmedError{Memberships: []pleach.Unconfirmed{{First: 1, Last: 2}}}, "/v1/broadcast?wait=stable",
			"", 503,
		},
		{errors.New("other"), "/v1/broadcast", "", 500},
	} {
		f.err = c.err
		w := request(s, "POST", c.target, c.body)
		if w.Code != c.want {
			t.Errorf("%s: %v: got %d, want %d", c.target, c.err, w.Code, c.want)
		}
		if c.want == 504 && !strings.Contains(w.Body.String(), `"unanswered":[3]`) {
			t.Errorf("got %s", w.Body)
		}
	}
}

// Requests beyond the limit are refused, not queued.
func TestRequestsAreLimited(t *testing.T) {
	f := newFake()
	f.hold = make(chan struct{})
	s := newTestServer(f)
	done := make(chan int)
	s.limits.calls = limit.NewPool(4, 4)
	for range 4 {
		go func() { done <- request(s, "POST", "/v1/send?to=b", "").Code }()
	}
	testutil.Eventually(t, "four calls", func() bool { return s.limits.calls.Used() == 4 })
	if w := request(s, "POST", "/v1/send?to=b", ""); w.Code != http.StatusTooManyRequests ||
		w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "too many calls") {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
	if w := request(s, "GET", "/v1/status", ""); w.Code != http.StatusOK {
		t.Errorf("the status of a busy agent: %d", w.Code)
	}
	if n := s.limits.Refused(reasonCalls); n != 1 {
		t.Errorf("%d refusals were counted", n)
	}
	close(f.hold)
	for range 4 {
		if code := <-done; code != http.StatusOK {
			t.Errorf("got %d", code)
		}
	}
}

// Events are as they are described, resume by either way, and their number is limited.
func TestEvents(t *testing.T) {
	f := newFake()
	s := newTestServer(f)
	server := httptest.NewServer(s.handler())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func(query, last string) *http.Response {
		r, _ := http.NewRequestWithContext(ctx, "GET", server.URL+"/v1/messages"+query, nil)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	f.log.Add(retention.Message{Topic: "t", Data: []byte("first")})
	for i := range 2 {
		f.log.Add(retention.Message{Topic: "t", Data: fmt.Append(nil, i), Time: moment})
	}
	f.log.Add(retention.Message{Gap: "rejoined", Time: moment})
	d := readDescription(t)
	for _, response := range []*http.Response{
		get("?topic=t&after=e-1-1", ""), get("?topic=t", "e-1-1"),
		get("?topic=t&after=0", "e-1-1"),
	} {
		lines := bufio.NewScanner(response.Body)
		for _, want := range []string{
			"id: e-2-2", "event: missed", `data: {"count":1}`, "",
			"id: e-3-3", "event: message", `data: {"topic":"t","from":{"rank":0,"id":""},"view":0,"time":`, "",
			"id: e-4-3", "event: gap", `data: {"reason":"rejoined","time":`, "",
		} {
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
				t.Fatalf("got %q, want %q", lines.Text(), want)
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				name := map[byte]string{'c': "Missed", 't': "Message", 'r': "Gap"}[data[2]]
				for _, c := range d.check(&schema{Ref: "/" + name}, name, decoded(t, []byte(data))) {
					t.Error(c)
				}
			}
		}
	}
	if response := get("?after=x", ""); response.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d", response.StatusCode)
	}
	if response := get("?topic=t&direct=true", ""); response.StatusCode != http.StatusBadRequest {
		t.Errorf("got %d", response.StatusCode)
	}
	s.limits.streams = limit.NewPool(0, 0)
	if response := get("", ""); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %d", response.StatusCode)
	}
}

// What has happened to the group is as it is described.
func TestGroupEvents(t *testing.T) {
	f := newFake()
	server := httptest.NewServer(newTestServer(f).handler())
	defer server.Close()
	e := new(Event)
	fill(reflect.ValueOf(e).Elem())
	e.Event = EventFailed
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	f.events.Add(retention.Message{Topic: e.Event, Data: b})
	response, err := http.Get(server.URL + "/v1/events?after=0")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for _, want := range []string{"id: g-1", "event: member-failed", `data: {"event":"member-failed"`} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
	}
	for _, c := range readDescription(t).check(&schema{Ref: "/Event"},
		"Event", decoded(t, []byte(strings.TrimPrefix(lines.Text(), "data: ")))) {
		t.Error(c)
	}
}

// serveTCP returns the address of a server that wants the token "t".
func serveTCP(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.SetToken("t")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.ServeTCP(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// Public routes need no token. A path that leads through them to another route does.
func TestPublicRoutes(t *testing.T) {
	s := newTestServer(newFake())
	s.HandlePublic("GET /ui/", http.RedirectHandler("/elsewhere", http.StatusFound))
	address := serveTCP(t, s)
	for path, want := range map[string]int{
		"/healthz": 200, "/ui/": 302, "/ui/x": 302, "/ui": 307, "/v1/tree": 401, "/": 401, "/none": 401,
		// that stays below /ui/
		"/ui/../v1/tree": 401, "/ui//../v1/tree": 401, "/healthz/../v1/tree": 401, "/ui/%2e%2e/v1/tree": 302,
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//" + r.Host + path // as it is
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, response.StatusCode, want)
		}
	}
}

// A page of another site cannot make the browser of a user broadcast, even if it knew the
// token.
func TestOtherSitesAreRefused(t *testing.T) {
	address := serveTCP(t, newTestServer(newFake()))
	for origin, want := range map[string]int{"": 200, address: 200, "http://evil.example": 403} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", address+"/v1/broadcast", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer t")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("from %q: got %d, want %d", origin, response.StatusCode, want)
		}
	}
}

func TestPayload(t *testing.T) {
	for _, b := range [][]byte{{}, []byte("text"), {0xff, 0}} {
		got, err := NewPayload(b).Bytes()
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%q: got %q, %v", b, got, err)
		}
	}
	if _, err := (Payload{Encoding: "x"}).Bytes(); err == nil {
		t.Error("an unknown encoding")
	}
}

// Requests whose bodies do not arrive end, and do not keep others out. One whose body has
// arrived may take its time.
func TestBodiesHaveToArrive(t *testing.T) {
	s := newTestServer(newFake())
	s.limits.bodyTimeout = 200 * time.Millisecond
	s.limits.calls = limit.NewPool(4, 4)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.ServeSocket(t.Context(), l) }()
	for range 4 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "POST /v1/broadcast HTTP/1.1\r\nHost: agent\r\nContent-Length: 100\r\n\r\nhalf")
	}
	testutil.Eventually(t, "all requests are under way", func() bool { return s.limits.calls.Used() == 4 })
	testutil.Eventually(t, "another request", func() bool {
		var r *http.Response
		r, err = http.Post("http://"+l.Addr().String()+"/v1/broadcast", "", strings.NewReader("whole"))
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, func() any { return err })
}
