package api

import (
	"context"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// openAPI describes the API.
//
//go:embed openapi.yaml
var openAPI []byte

// Limits of the API.
const (
	// MaxBody is the longest body of a request in bytes, but for that of a file.
	MaxBody = 16 << 20
	// maxRequests is how many requests with a body are served at a time, and
	// maxSubscribers how many streams of messages.
	maxRequests    = 64
	maxSubscribers = 256
	// defaultTimeout and maxTimeout bound how long a request may take.
	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
	// headerTimeout and idleTimeout bound what a connection may wait for.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// bodyTimeout bounds how long a body may take, or a part of a long one: requests that
	// are not finished must not keep others out.
	bodyTimeout = 10 * time.Second
	maxHeader   = 64 << 10
)

// route is a path of the API.
type route struct {
	method, path string
	serve        func(s *Server, w http.ResponseWriter, r *http.Request) error
}

// routes are all of them. openapi.yaml has the same.
var routes = []route{
	{"POST", "/v1/broadcast", (*Server).broadcast},
	{"GET", "/v1/messages", (*Server).messages},
	{"GET", "/v1/events", (*Server).events},
	{"POST", "/v1/send", (*Server).send},
	{"POST", "/v1/query", (*Server).query},
	{"POST", filesPath, (*Server).files},
	{"GET", "/v1/kv", (*Server).listKeys},
	{"GET", "/v1/kv/{key...}", (*Server).getKey},
	{"PUT", "/v1/kv/{key...}", (*Server).putKey},
	{"DELETE", "/v1/kv/{key...}", (*Server).deleteKey},
	{"GET", "/v1/watch", (*Server).watchKeys},
	{"GET", "/v1/locks", (*Server).listLocks},
	{"POST", locksPath, (*Server).lock},
	{"PUT", locksPath, (*Server).renewLock},
	{"DELETE", locksPath, (*Server).unlock},
	{"GET", "/v1/shards/{name}", (*Server).getShards},
	{"PUT", "/v1/shards/{name}", (*Server).putShards},
	{"DELETE", "/v1/shards/{name}", (*Server).deleteShards},
	{"GET", "/v1/members", (*Server).members},
	{"GET", "/v1/status", (*Server).status},
	{"GET", "/v1/views", (*Server).views},
	{"GET", "/v1/tree", (*Server).tree},
	{"GET", "/v1/fleet", (*Server).fleet},
	{"GET", "/v1/openapi.yaml", (*Server).describe},
	{"GET", "/metrics", (*Server).scrape},
	{"GET", "/healthz", (*Server).health},
	{"GET", "/readyz", (*Server).ready},
}

// filesPath is the one route whose body may be long.
const filesPath = "/v1/files"

// Server serves the API of an agent.
type Server struct {
	agent       Agent
	metrics     http.Handler
	log         *slog.Logger
	mux         *http.ServeMux
	token       atomic.Pointer[string]
	requests    chan struct{}
	subscribers atomic.Int64
	public      map[string]bool // patterns that need no token
	bodyTimeout time.Duration
}

// NewServer makes the server of an agent.
func NewServer(a Agent, log *slog.Logger) *Server {
	s := &Server{agent: a, metrics: a.Metrics(), log: log, mux: http.NewServeMux(), bodyTimeout: bodyTimeout, requests: make(chan struct{}, maxRequests)}
	s.public = map[string]bool{"GET /healthz": true, "GET /readyz": true} // a supervisor asks them
	for _, r := range routes {
		s.mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) { s.serve(r, w, q) })
	}
	return s
}

// HandlePublic adds a route that needs no token, because it tells nothing of the group.
func (s *Server) HandlePublic(pattern string, h http.Handler) {
	s.public[pattern] = true
	s.mux.Handle(pattern, h)
}

// SetToken sets the token that clients over TCP need.
func (s *Server) SetToken(token string) { s.token.Store(&token) }

// ServeSocket serves connections of a Unix socket until ctx ends: its file mode says which
// users may use it.
func (s *Server) ServeSocket(ctx context.Context, l net.Listener) error {
	return s.listen(ctx, l, s.mux)
}

// ServeTCP serves connections that need the token until ctx ends.
func (s *Server) ServeTCP(ctx context.Context, l net.Listener) error {
	return s.listen(ctx, l, http.HandlerFunc(s.authorize))
}

// ServeMetrics serves connections that need no token until ctx ends, for metrics and probes
// alone.
func (s *Server) ServeMetrics(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	for _, r := range routes {
		if r.path == "/metrics" || r.path == "/healthz" || r.path == "/readyz" {
			mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) { s.serve(r, w, q) })
		}
	}
	return s.listen(ctx, l, mux)
}

func (s *Server) listen(ctx context.Context, l net.Listener, h http.Handler) error {
	guarded := http.NewCrossOriginProtection().Handler(h) // a page in a browser of this host may come from anywhere
	server := &http.Server{
		Handler: guarded, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// authorize lets requests with the token pass.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	want := s.token.Load()
	_, pattern := s.mux.Handler(r) // not the path, which may have dots that lead elsewhere
	if !s.public[pattern] && (!ok || want == nil || subtle.ConstantTimeCompare([]byte(given), []byte(*want)) != 1) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		s.fail(w, r, &statusError{http.StatusUnauthorized, errors.New("the header Authorization: Bearer TOKEN is missing or wrong: the agent's token-file has the token")})
		return
	}
	s.mux.ServeHTTP(w, r)
}

// serve serves a request within the limits.
func (s *Server) serve(r route, w http.ResponseWriter, q *http.Request) {
	if (r.method == http.MethodPost || r.method == http.MethodPut) && r.path != locksPath {
		select {
		case s.requests <- struct{}{}:
			defer func() { <-s.requests }()
		default:
			s.fail(w, q, &statusError{http.StatusTooManyRequests, errors.New("too many requests at a time: try again")})
			return
		}
		body := &timedBody{ReadCloser: q.Body, control: http.NewResponseController(w), parts: r.path == filesPath, timeout: s.bodyTimeout}
		body.extend()
		q.Body = body
		if r.path != filesPath {
			q.Body = http.MaxBytesReader(w, q.Body, MaxBody)
		}
	}
	if err := r.serve(s, w, q); err != nil {
		s.fail(w, q, err)
	}
}

// timedBody is a body that has to arrive in time, or each part of it.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	parts   bool
	timeout time.Duration
}

func (b *timedBody) extend() { _ = b.control.SetReadDeadline(time.Now().Add(b.timeout)) }

// Read implements [io.Reader]. After the end the connection may be silent again.
func (b *timedBody) Read(p []byte) (int, error) {
	if b.parts {
		b.extend() // not earlier: the server may be slow itself
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// bounded returns a context that ends when the request takes too long.
func bounded(r *http.Request) (context.Context, context.CancelFunc, error) {
	timeout := defaultTimeout
	if text := r.URL.Query().Get("timeout"); text != "" {
		var err error
		if timeout, err = time.ParseDuration(text); err != nil || timeout <= 0 || timeout > maxTimeout {
			return nil, nil, badRequest("timeout=%s: write a time up to %v, as in 5s", text, maxTimeout)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	return ctx, cancel, nil
}

// reply writes a JSON object.
func reply(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_ = encodeJSON(w, v) // the client may be gone
	return nil
}

// encodeJSON writes an object on one line. It is not for a page of HTML.
func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
	return nil
}

func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	s.metrics.ServeHTTP(w, r)
	return nil
}

// health says that the process serves requests.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	if err := s.agent.Ready(); err != nil {
		return &statusError{http.StatusServiceUnavailable, err}
	}
	_, _ = io.WriteString(w, "ok\n")
	return nil
}
