package api

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/agent/limit"
	"github.com/pleach-go/pleach/agent/rights"
	"github.com/pleach-go/pleach/internal/base/logsuppress"
)

// openAPI describes the API.
//
//go:embed openapi.yaml
var openAPI []byte

// Limits of the API.
const (
	// MaxBody is the longest body of a request in bytes, but for that of a file.
	MaxBody = 16 << 20
	// defaultTimeout and maxTimeout bound how long a request may take.
	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
	maxHeader      = 64 << 10
)

// route is a path of the API.
type route struct {
	method, path string
	right        rights.Right // that a client needs
	kind         kind
	action       string // the name in the audit log of what the request changes; empty: nothing
	serve        func(s *Server, w http.ResponseWriter, r *http.Request) error
}

// routes are all of them. openapi.yaml has the same.
var routes = []route{
	{"POST", "/v1/broadcast", rights.Send, bodyCall, "send", (*Server).broadcast},
	{"GET", "/v1/messages", rights.Read, streamCall, "", (*Server).messages},
	{"GET", "/v1/events", rights.Read, streamCall, "", (*Server).events},
	{"POST", "/v1/send", rights.Send, bodyCall, "send", (*Server).send},
	{"POST", "/v1/query", rights.Send, bodyCall, "query", (*Server).query},
	{"POST", filesPath, rights.Files, uploadCall, "files", (*Server).files},
	{"GET", "/v1/kv", rights.Keys, shortCall, "", (*Server).listKeys},
	{"GET", "/v1/kv/{key...}", rights.Keys, shortCall, "", (*Server).getKey},
	{"PUT", "/v1/kv/{key...}", rights.Keys, bodyCall, "put key", (*Server).putKey},
	{"DELETE", "/v1/kv/{key...}", rights.Keys, shortCall, "delete key", (*Server).deleteKey},
	{"GET", "/v1/watch", rights.Keys, streamCall, "", (*Server).watchKeys},
	{"GET", "/v1/locks", rights.Locks, shortCall, "", (*Server).listLocks},
	{"POST", locksPath, rights.Locks, streamCall, "lock", (*Server).lock},
	{"PUT", locksPath, rights.Locks, shortCall, "renew lock", (*Server).renewLock},
	{"DELETE", locksPath, rights.Locks, shortCall, "unlock", (*Server).unlock},
	{"GET", "/v1/shards/{name}", rights.Read, shortCall, "", (*Server).getShards},
	{"PUT", "/v1/shards/{name}", rights.Operate, shortCall, "put shards", (*Server).putShards},
	{"DELETE", "/v1/shards/{name}", rights.Operate, shortCall, "delete shards", (*Server).deleteShards},
	{"GET", "/v1/rollouts", rights.Read, shortCall, "", (*Server).listRollouts},
	{"POST", "/v1/rollouts", rights.Send, bodyCall, "start rollout", (*Server).startRollout},
	{"GET", "/v1/rollouts/{id}", rights.Read, shortCall, "", (*Server).getRollout},
	{"PUT", "/v1/rollouts/{id}", rights.Send, shortCall, "change rollout", (*Server).changeRollout},
	{"GET", "/v1/members", rights.Read, briefCall, "", (*Server).members},
	{"GET", "/v1/status", rights.Read, briefCall, "", (*Server).status},
	{"GET", "/v1/views", rights.Read, briefCall, "", (*Server).views},
	{"GET", "/v1/tree", rights.Read, briefCall, "", (*Server).tree},
	{"GET", "/v1/fleet", rights.Read, shortCall, "", (*Server).fleet},
	{"GET", "/v1/openapi.yaml", rights.Read, briefCall, "", (*Server).describe},
	{"GET", "/metrics", rights.Read, briefCall, "", (*Server).scrape},
	{"GET", "/healthz", rights.Public, briefCall, "", (*Server).health},
	{"GET", "/readyz", rights.Public, briefCall, "", (*Server).ready},
}

// filesPath is the one route whose body may be long.
const filesPath = "/v1/files"

// Server serves the API of an agent.
type Server struct {
	agent   Agent
	metrics http.Handler
	log     *slog.Logger
	mux     *http.ServeMux
	token   atomic.Pointer[string]
	rules   atomic.Pointer[rights.Rules]
	public  map[string]bool // patterns that need no token
	limits  limits
	audit   audit

	failures logsuppress.Foreign // that were logged
}

// NewServer makes the server of an agent.
func NewServer(a Agent, log *slog.Logger) *Server {
	s := &Server{agent: a, log: log, mux: http.NewServeMux(), limits: newLimits()}
	s.metrics = a.Metrics(s.limits.Refused)
	s.audit.init(log)
	s.public = map[string]bool{"GET /healthz": true, "GET /readyz": true} // a supervisor asks them
	for _, r := range routes {
		s.mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) { s.serve(&r, w, q) })
	}
	return s
}

// HandlePublic adds a route that needs no token, because it tells nothing of the group.
func (s *Server) HandlePublic(pattern string, h http.Handler) {
	s.public[pattern] = true
	s.mux.Handle(pattern, h)
}

// SetToken sets the token that gives clients all rights.
func (s *Server) SetToken(token string) { s.token.Store(&token) }

// SetRules sets the rights of other tokens, and of users and groups at the Unix socket. Without rules
// each client at the Unix socket has all rights.
func (s *Server) SetRules(r *rights.Rules) { s.rules.Store(r) }

// ServeSocket serves connections of a Unix socket until ctx ends: its file mode says which
// users may use it, and the rules what they may do.
func (s *Server) ServeSocket(ctx context.Context, l net.Listener) error {
	return s.listen(ctx, limit.NewListener(l, limit.Connections(), refusalText, s.limits.count(reasonConnections)), nil,
		s.socketHandler())
}

// ServeTCP serves connections that need a token until ctx ends.
func (s *Server) ServeTCP(ctx context.Context, l net.Listener) error {
	limited := limit.NewListener(l, limit.Connections()/2, refusalText, s.limits.count(reasonConnections))
	return s.listen(ctx, limited, nil, s.checkHost(nil, http.HandlerFunc(s.authorize)))
}

// ServeMetrics serves connections that need no token until ctx ends, for metrics and probes
// alone. If secure is not nil, it has the certificate. Hosts are the names by which clients may reach
// the listener, besides IP addresses.
func (s *Server) ServeMetrics(ctx context.Context, l net.Listener, secure *tls.Config, hosts []string) error {
	mux := http.NewServeMux()
	for _, r := range routes {
		if r.path == "/metrics" || r.path == "/healthz" || r.path == "/readyz" {
			mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) {
				s.serve(&r, w, withCaller(q, &caller{who: "anonymous", rights: rights.Set(rights.Read)}))
			})
		}
	}
	text := refusalText
	if secure != nil {
		text = nil // which would not be encrypted
	}
	limited := limit.NewListener(l, limit.Connections()/4, text, s.limits.count(reasonConnections))
	return s.listen(ctx, limited, secure, s.checkHost(hosts, mux))
}

func (s *Server) listen(ctx context.Context, l net.Listener, secure *tls.Config, h http.Handler) error {
	origins := http.NewCrossOriginProtection() // a page in a browser of this host may come from anywhere
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &statusError{http.StatusForbidden, errors.New("a page of another site may not change anything here")})
	}))
	guarded := origins.Handler(h)
	server := &http.Server{
		Handler: s.inTime(guarded), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: limit.WithConn,
		ErrorLog: slog.NewLogLogger(&boundedLog{Handler: s.log.Handler()}, slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// checkHost lets requests pass that name this host by an IP address, as localhost, or by one of names: a
// page in a browser reaches other addresses by a name of its own (DNS rebinding).
func (s *Server) checkHost(names []string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostName(r.Host); !allowedHost(host, names) {
			s.fail(w, r, &statusError{
				http.StatusMisdirectedRequest,
				fmt.Errorf("the request is for the host %q: use the IP address, or add the name to metrics-hosts of the agent",
					host),
			})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostName is the host of the header Host, without the port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

func allowedHost(host string, names []string) bool {
	if host == "" || strings.EqualFold(host, "localhost") || net.ParseIP(host) != nil {
		return true
	}
	for _, name := range names {
		if strings.EqualFold(host, name) {
			return true
		}
	}
	return false
}

// serve serves a request within the rights of its client and the limits.
func (s *Server) serve(r *route, w http.ResponseWriter, q *http.Request) {
	c := callerOf(q)
	err := s.check(r, c, q)
	if err == nil {
		err = s.within(r, w, q)
	}
	if r.action != "" {
		s.audit.request(c, r.action, q, err)
	}
	if err != nil {
		s.fail(w, q, err)
	}
}

// check returns why a request may not be served.
func (s *Server) check(r *route, c *caller, q *http.Request) error {
	if !c.rights.Has(r.right) {
		return s.lacks(c, r.right)
	}
	if _, err := url.ParseQuery(q.URL.RawQuery); err != nil {
		return badRequest("the query of the URL is wrong: %w: write %%3B for a semicolon", err)
	}
	return nil
}

// lacks refuses a request of a client that does not have a right.
func (s *Server) lacks(c *caller, right rights.Right) error {
	s.limits.count(reasonRights)()
	return &statusError{
		http.StatusForbidden,
		fmt.Errorf("%s does not have the right %s: the agent's rights-file gives it", c.who, right),
	}
}

// caller is the client that makes a request.
type caller struct {
	who, from string
	rights    rights.Set
}

// callerKey is the key of a caller in a context.
type callerKey struct{}

func withCaller(r *http.Request, c *caller) *http.Request {
	if conn := limit.ConnOf(r.Context()); c.from == "" && conn != nil {
		c.from = conn.Peer.String()
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf returns the caller of a request. One that is not known has no rights.
func callerOf(r *http.Request) *caller {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{who: "this client"}
}

// socketHandler serves clients of a Unix socket.
func (s *Server) socketHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := s.localCaller(limit.ConnOf(r.Context()))
		if t, ok := s.tokenCaller(r); ok {
			c.who, c.rights = t.who, c.rights|t.rights
		}
		s.mux.ServeHTTP(w, withCaller(r, c))
	})
}

// localCaller returns the user of a connection of a Unix socket.
func (s *Server) localCaller(conn *limit.Conn) *caller {
	rules := s.rules.Load()
	c := &caller{who: "local", from: "socket", rights: rights.All}
	if conn != nil {
		c.who = conn.Peer.String()
		if p := &conn.Peer; rules != nil && p.Known && p.UID != 0 && p.UID != os.Geteuid() {
			c.rights = rules.OfUser(p.UID, p.Groups)
		}
	}
	return c
}

// tokenCaller returns the caller whose token a request has.
func (s *Server) tokenCaller(r *http.Request) (*caller, bool) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, false
	}
	if want := s.token.Load(); want != nil && subtle.ConstantTimeCompare([]byte(given), []byte(*want)) == 1 {
		return &caller{who: "token-file", rights: rights.All}, true
	}
	set, name, ok := s.rules.Load().OfToken(given)
	return &caller{who: "token " + name, rights: set}, ok
}

// authorize lets requests with a token pass.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	c, ok := s.tokenCaller(r)
	_, pattern := s.mux.Handler(r) // not the path, which may have dots that lead elsewhere
	if !ok && !s.public[pattern] {
		s.limits.count(reasonRights)()
		w.Header().Set("WWW-Authenticate", "Bearer")
		s.fail(w, r, &statusError{
			http.StatusUnauthorized,
			errors.New("the header Authorization: Bearer TOKEN is missing or wrong: the agent's token-file has the token"),
		})
		return
	}
	if ok {
		r = withCaller(r, c)
	}
	s.mux.ServeHTTP(w, r)
}

// bounded returns a context that ends when the request takes too long.
func bounded(r *http.Request) (context.Context, context.CancelFunc, error) {
	timeout := defaultTimeout
	if text := r.URL.Query().Get("timeout"); text != "" {
		var err error
		timeout, err = time.ParseDuration(text)
		if err != nil || timeout <= 0 || timeout > maxTimeout {
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

// scrape serves metrics. One scrape is made at a time, in memory: a client that reads slowly does not
// keep others waiting.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	done, ok := s.limits.scrapes.Wait(ctx, "", 1)
	if !ok {
		return s.limits.busy(reasonScrapes)
	}
	result := buffered{header: w.Header()}
	s.metrics.ServeHTTP(&result, r)
	done()
	return result.writeTo(w)
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
