package api

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/kv"
)

// Keys are keys and values that all agents of a group keep in memory.
type Keys interface {
	Get(ctx context.Context, key string) (*Entry, error)
	// List returns the entries whose keys begin with a prefix.
	List(ctx context.Context, prefix string) (*Entries, error)
	// Put and Delete change a key that has a version: [kv.Any], or [kv.Absent] for Put.
	Put(ctx context.Context, key string, value []byte, version uint64) (*Changed, error)
	Delete(ctx context.Context, key string, version uint64) (*Changed, error)
	// Watch yields the keys that are there, and then each that changes, until the context of
	// the sequence ends. Its own bounds the call.
	Watch(ctx context.Context, w kv.Watch) (func(context.Context) iter.Seq[Change], error)
}

// Entry is a key with its value.
type Entry struct {
	Key     string `json:"key"`
	Version uint64 `json:"version"`
	Payload
}

// Entries are keys with their values, in order of the keys.
type Entries struct {
	Entries []Entry `json:"entries"`
}

// Changed is the reply to a change of a key. Version is the number of the change.
type Changed struct {
	Key     string `json:"key"`
	Version uint64 `json:"version"`
}

// Change is a key that has another value, or none: then Version is that of its last value.
type Change struct {
	Entry
	Deleted bool `json:"deleted,omitempty"`
}

// The names of events of a watch.
const (
	EventPut    = "put"
	EventDelete = "delete"
)

// versionOf is the version that a request to change a key names.
func versionOf(r *http.Request) (uint64, error) {
	if strings.HasPrefix(r.PathValue("key"), kv.ReservedPrefix) {
		return 0, badRequest("keys that begin with %s are those of the agents", kv.ReservedPrefix)
	}
	text := r.URL.Query().Get("version")
	if text == "" {
		return kv.Any, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badRequest("version=%s: write the version of the key, or 0 for a key that is not there", text)
	}
	return version, nil
}

func (s *Server) getKey(w http.ResponseWriter, r *http.Request) error {
	return call(w, r, func(ctx context.Context) (any, error) { return s.agent.Get(ctx, r.PathValue("key")) })
}

func (s *Server) listKeys(w http.ResponseWriter, r *http.Request) error {
	return call(w, r, func(ctx context.Context) (any, error) { return s.agent.List(ctx, r.URL.Query().Get("prefix")) })
}

func (s *Server) putKey(w http.ResponseWriter, r *http.Request) error {
	version, err := versionOf(r)
	if err != nil {
		return err
	}
	return s.post(w, r, kv.MaxValue, func(ctx context.Context, body []byte) (any, error) {
		return s.agent.Put(ctx, r.PathValue("key"), body, version)
	})
}

func (s *Server) deleteKey(w http.ResponseWriter, r *http.Request) error {
	version, err := versionOf(r)
	if err != nil {
		return err
	}
	return call(w, r, func(ctx context.Context) (any, error) { return s.agent.Delete(ctx, r.PathValue("key"), version) })
}

// call calls f within the time of a request, and writes what f returns.
func call(w http.ResponseWriter, r *http.Request, f func(ctx context.Context) (any, error)) error {
	ctx, cancel, err := bounded(r)
	if err != nil {
		return err
	}
	defer cancel()
	result, err := f(ctx)
	return reply(w, result, err)
}

// watchKeys streams keys that change as server-sent events.
func (s *Server) watchKeys(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel, err := bounded(r)
	if err != nil {
		return err
	}
	defer cancel()
	watch := kv.Watch{Key: r.URL.Query().Get("key"), Prefix: r.URL.Query().Get("prefix")}
	changes, err := s.agent.Watch(ctx, watch)
	if err != nil {
		return err
	}
	subscribe(w)
	next := make(chan Change)
	go func() {
		defer close(next)
		for c := range changes(r.Context()) {
			select {
			case next <- c:
			case <-r.Context().Done():
			}
		}
	}()
	for r.Context().Err() == nil && writeChange(w, next) == nil {
	}
	for range next { // the client is gone, and the server needs w no longer than this call
	}
	return nil
}

// writeChange waits for the next change and writes it.
func writeChange(w http.ResponseWriter, next <-chan Change) error {
	timer := time.NewTimer(keepAlive)
	defer timer.Stop()
	control := http.NewResponseController(w)
	select {
	case c, ok := <-next:
		name := EventPut
		if c.Deleted {
			name = EventDelete
		}
		if !ok {
			return io.EOF
		}
		return send(control, func() error { return encodeSSE(w, "", name, c) })
	case <-timer.C:
		return send(control, func() error { return encodeKeepAlive(w) })
	}
}

// keyStatus is the status of an error of keys and locks; 0: it is none of theirs.
func keyStatus(err error) int {
	var conflict *kv.ConflictError
	var limit *kv.LimitError
	switch {
	case errors.As(err, &conflict):
		return http.StatusConflict
	case errors.As(err, &limit):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, kv.ErrNotFound), errors.Is(err, ErrNoShards):
		return http.StatusNotFound
	}
	return 0
}
