package api

// What a request may use up: time, connections, memory, and room among other requests. A source is a
// user of the host, or an IP address.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/agent/limit"
	"github.com/pleach-go/pleach/internal/base/logsuppress"
)

const (
	// headerTimeout and idleTimeout bound what a connection may wait for.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// bodyTimeout bounds how long a body may take, or a part of a long one of at least minPart bytes:
	// requests that are not finished must not keep others out.
	bodyTimeout = 10 * time.Second
	minPart     = 64 << 10
	// writeTimeout is how long a client may read nothing.
	writeTimeout = 30 * time.Second
	// scrapeTimeout is how long a scrape waits for another one.
	scrapeTimeout = 5 * time.Second
	// maxIgnored is the longest body of a request that needs none, and shortBody that of one which does
	// not count for the bytes in memory.
	maxIgnored = 64 << 10
	shortBody  = 64 << 10
)

// Bounds of requests at a time. Each source has three quarters of them at most, and half of the bytes.
const (
	maxCalls   = 256
	maxStreams = 256
	maxUploads = 8
	maxBytes   = 2 * MaxBody // of bodies in memory
)

// kind is what bounds the requests of a route.
type kind uint8

const (
	briefCall  kind = iota + 1 // answered from memory: bounded by the connections alone
	shortCall                  // may wait for the group
	bodyCall                   // one with a body
	streamCall                 // lasts as long as the client wants
	uploadCall                 // a body of any length, to a file
)

// The reasons for which requests and connections are refused, as metrics have them.
const (
	reasonConnections = "connections"
	reasonCalls       = "calls"
	reasonStreams     = "streams"
	reasonUploads     = "uploads"
	reasonBytes       = "bytes"
	reasonScrapes     = "scrapes"
	reasonRights      = "rights"
)

// RefusalReasons are all of them.
var RefusalReasons = []string{
	reasonConnections, reasonCalls, reasonStreams, reasonUploads, reasonBytes, reasonScrapes,
	reasonRights,
}

// limits is what is in use, and how often something was refused.
type limits struct {
	calls, streams, uploads, bytes, scrapes *limit.Pool

	refused     map[string]*atomic.Uint64 // by reason
	bodyTimeout time.Duration
}

func newLimits() limits {
	n := int64(limit.Connections())
	pool := func(most int64) *limit.Pool { return limit.NewPool(most, most-most/4) }
	l := limits{
		calls: pool(min(maxCalls, n/4)), streams: pool(min(maxStreams, n/2)), uploads: pool(maxUploads),
		bytes: limit.NewPool(maxBytes, maxBytes/2), scrapes: limit.NewPool(1, 1),
		refused: make(map[string]*atomic.Uint64), bodyTimeout: bodyTimeout,
	}
	for _, reason := range RefusalReasons {
		l.refused[reason] = new(atomic.Uint64)
	}
	return l
}

// count returns what counts a refusal.
func (l *limits) count(reason string) func() {
	n := l.refused[reason]
	return func() { n.Add(1) }
}

// Refused returns how often something was refused for a reason.
func (l *limits) Refused(reason string) uint64 { return l.refused[reason].Load() }

// busy refuses a request for now.
func (l *limits) busy(reason string) error {
	l.count(reason)()
	return &statusError{
		http.StatusTooManyRequests,
		fmt.Errorf("too many %s at a time: try again in a second (Retry-After); the metric pleach_agent_api_refused_total counts this", reason),
	}
}

// refusalText is the reply to a connection for which there is no room.
var refusalText = []byte(
	"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" +
		`{"error":"too many connections at a time: close some, or try again in a second (Retry-After)"}` + "\n")

// sourceOf is whom a request counts for.
func sourceOf(r *http.Request) string {
	if c := limit.ConnOf(r.Context()); c != nil {
		return c.Peer.String()
	}
	return ""
}

// inTime has every request read and written in time, whatever becomes of it.
func (s *Server) inTime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		out := &timedWriter{ResponseWriter: w, control: control}
		out.extend()
		if r.Body != http.NoBody {
			b := &timedBody{ReadCloser: r.Body, control: control, parts: r.URL.Path == filesPath, timeout: s.limits.bodyTimeout}
			b.extend()
			r.Body = b
		}
		h.ServeHTTP(out, r)
	})
}

// within serves a request if there is room for another one of its kind.
func (s *Server) within(r *route, w http.ResponseWriter, q *http.Request) error {
	pool, reason := (*limit.Pool)(nil), ""
	switch r.kind {
	case shortCall, bodyCall:
		pool, reason = s.limits.calls, reasonCalls
	case streamCall:
		pool, reason = s.limits.streams, reasonStreams
	case uploadCall:
		pool, reason = s.limits.uploads, reasonUploads
	}
	if pool != nil {
		done, ok := pool.Take(sourceOf(q), 1)
		if !ok {
			return s.limits.busy(reason)
		}
		defer done()
	}
	if r.kind != bodyCall && r.kind != uploadCall && q.Body != http.NoBody {
		if n, err := io.CopyN(io.Discard, q.Body, maxIgnored+1); n > maxIgnored || !errors.Is(err, io.EOF) {
			w.Header().Set("Connection", "close")
			return badRequest("%s %s has no body", r.method, r.path)
		}
	}
	if c := limit.ConnOf(q.Context()); c != nil {
		defer c.Serve()() // not before: a request with a body that it does not need may never be whole
	}
	return r.serve(s, w, q)
}

// readBody reads a body of at most so many bytes, when there is room for it in memory. Free gives the
// room back. Short bodies need none: the number of calls bounds them.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, most int64) (b []byte, free func(), err error) {
	defer func() {
		if err != nil {
			w.Header().Set("Connection", "close") // the rest may be long
		}
	}()
	free = func() {}
	size := r.ContentLength
	if size > most {
		return nil, nil, &http.MaxBytesError{Limit: most}
	}
	if size < 0 { // it is not known
		b, err = io.ReadAll(io.LimitReader(r.Body, shortBody+1))
		if err != nil || len(b) <= shortBody {
			return b, free, s.lateBody(err)
		}
		size = most
	}
	if size > shortBody {
		free, err = s.roomForBody(r, size)
		if err != nil {
			return nil, nil, err
		}
	}
	switch {
	case r.ContentLength < 0:
		b, err = readLong(io.MultiReader(bytes.NewReader(b), r.Body), int(size)+1)
		if int64(len(b)) > size {
			err = &http.MaxBytesError{Limit: most}
		}
	case size > shortBody:
		b, err = readLong(r.Body, int(size))
		if err == nil && int64(len(b)) < size {
			err = io.ErrUnexpectedEOF
		}
	default:
		b = make([]byte, size)
		_, err = io.ReadFull(r.Body, b)
	}
	if err != nil {
		free()
	}
	return b, free, s.lateBody(err)
}

// readLong reads up to so many bytes. They are copied to the heap only when all have arrived, so a client
// that does not finish leaves no garbage.
func readLong(r io.Reader, most int) ([]byte, error) {
	b, free, err := mapped(most)
	if err != nil {
		return nil, err
	}
	defer free()
	n := 0
	for n < most && err == nil {
		var read int
		read, err = r.Read(b[n:])
		n += read
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return bytes.Clone(b[:n]), nil
}

// roomForBody waits until there is room in memory.
func (s *Server) roomForBody(r *http.Request, size int64) (free func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.bodyTimeout)
	defer cancel()
	free, ok := s.limits.bytes.Wait(ctx, sourceOf(r), size)
	if !ok {
		return nil, s.limits.busy(reasonBytes)
	}
	return free, nil
}

// lateBody explains the error of a body that has not arrived in time.
func (s *Server) lateBody(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &statusError{http.StatusRequestTimeout, fmt.Errorf("the body has not arrived in %v", s.limits.bodyTimeout)}
	}
	return err
}

// timedBody is a body that has to arrive in time, or each part of it. The time in which this agent
// does not read does not count.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	parts   bool
	arrived int // of the present part
	timeout time.Duration
	left    time.Duration
}

func (b *timedBody) extend() {
	b.left = b.timeout
	_ = b.control.SetReadDeadline(time.Now().Add(b.left))
}

// Read implements [io.Reader]. After the end the connection may be silent again.
func (b *timedBody) Read(p []byte) (int, error) {
	began := time.Now()
	_ = b.control.SetReadDeadline(began.Add(b.left))
	n, err := b.ReadCloser.Read(p)
	b.left -= time.Since(began)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	} else {
		b.arrived += n
		if b.parts && b.arrived >= minPart {
			b.arrived, b.left = 0, b.timeout
		}
	}
	return n, err
}

// timedWriter is a reply that the client has to read in time.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *timedWriter) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }

// Write implements [io.Writer].
func (w *timedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// FlushError writes what is buffered.
func (w *timedWriter) FlushError() error {
	w.extend()
	return w.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// buffered is a reply in memory.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (b *buffered) Header() http.Header { return b.header }

// WriteHeader implements [http.ResponseWriter].
func (b *buffered) WriteHeader(status int) { b.status = status }

// Write implements [http.ResponseWriter].
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }

func (b *buffered) writeTo(w http.ResponseWriter) error {
	if b.status != 0 {
		w.WriteHeader(b.status)
	}
	_, _ = w.Write(b.body.Bytes()) // the client may be gone
	return nil
}

// boundedLog is the log of a server of HTTP, whose lines clients cause.
type boundedLog struct {
	slog.Handler
	foreign logsuppress.Foreign
}

// Handle implements [slog.Handler].
func (l *boundedLog) Handle(ctx context.Context, r slog.Record) error {
	if _, changed := l.foreign.Changed("", errors.New(r.Message)); !changed {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}
