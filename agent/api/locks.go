package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lease"
)

// locksPath is the route of locks. Its requests have no body.
const locksPath = "/v1/locks/{name...}"

// Locks are leases in the group of the agents, which their holders renew.
type Locks interface {
	Locks(ctx context.Context) (*LockList, error)
	// Lock takes a lock. If wait is true, it waits until it is free or ctx ends.
	Lock(ctx context.Context, name, holder string, ttl time.Duration, wait bool) (*Lock, error)
	// Renew and Unlock want the handle of the lock, which only its holder has.
	Renew(ctx context.Context, name string, h Handle) error
	Unlock(ctx context.Context, name string, h Handle) error
}

// Handle proves that a client is the holder of a lock. Its text is TOKEN-SECRET.
type Handle struct {
	Token uint64
	// Secret is empty for locks that an agent without handles has given.
	Secret string
}

// String returns the text of the handle.
func (h Handle) String() string {
	if h.Secret == "" {
		return fmt.Sprint(h.Token)
	}
	return fmt.Sprintf("%d-%s", h.Token, h.Secret)
}

// ParseHandle is the inverse of String.
func ParseHandle(text string) (h Handle, err error) {
	token, secret, _ := strings.Cut(text, "-")
	h.Secret = secret
	h.Token, err = strconv.ParseUint(token, 10, 64)
	return h, err
}

// HandleError is returned for a lock that a client wants to renew or release without its handle.
type HandleError struct{ Name string }

func (e *HandleError) Error() string {
	return fmt.Sprintf("the handle is not that of the lock %q: only its holder, which got the handle with the lock, can renew and release it", e.Name)
}

// Lock is a lock that the client has taken.
type Lock struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	// Token is the fencing token: higher than that of every earlier holder.
	Token uint64 `json:"token"`
	// TTL is for how many seconds the lock is held without a renewal.
	TTL float64 `json:"ttl"`
	// Handle renews and releases the lock: a secret of the holder.
	Handle string `json:"handle"`
}

// HeldLock is a lock that some client holds.
type HeldLock struct {
	Name   string  `json:"name"`
	Holder string  `json:"holder"`
	TTL    float64 `json:"ttl"`
	// Expired says that the holder has not renewed it in time, and that another may take it.
	Expired bool `json:"expired,omitempty"`
}

// LockList is all locks of the group, in order of their names.
type LockList struct {
	Locks []HeldLock `json:"locks"`
}

// Bounds of the TTL of a lock.
const (
	DefaultTTL = 10 * time.Second
	MinTTL     = time.Second
	MaxTTL     = time.Hour
)

// maxHolder is the longest name of a holder in bytes.
const maxHolder = 255

func (s *Server) listLocks(w http.ResponseWriter, r *http.Request) error {
	return call(w, r, func(ctx context.Context) (any, error) { return s.agent.Locks(ctx) })
}

// lock takes a lock, which may take as long as the client wants.
func (s *Server) lock(w http.ResponseWriter, r *http.Request) error {
	name, query, ttl := r.PathValue("name"), r.URL.Query(), DefaultTTL
	if text := query.Get("ttl"); text != "" {
		var err error
		ttl, err = time.ParseDuration(text)
		if err != nil || ttl < MinTTL || ttl > MaxTTL {
			return badRequest("ttl=%s: write a time from %v to %v, as in 10s", text, MinTTL, MaxTTL)
		}
	}
	if name == "" || len(name) > maxHolder || len(query.Get("holder")) > maxHolder {
		return badRequest("a lock and its holder have names of at most %d bytes", maxHolder)
	}
	return call(w, r, func(ctx context.Context) (any, error) {
		return s.agent.Lock(ctx, name, query.Get("holder"), ttl, query.Get("wait") == "true")
	})
}

func (s *Server) renewLock(w http.ResponseWriter, r *http.Request) error {
	return s.withHandle(w, r, s.agent.Renew)
}

func (s *Server) unlock(w http.ResponseWriter, r *http.Request) error {
	return s.withHandle(w, r, s.agent.Unlock)
}

// Token is the reply to a renewal and to a release.
type Token struct {
	Name  string `json:"name"`
	Token uint64 `json:"token"`
}

// withHandle calls f with the lock and the handle that a request names.
func (s *Server) withHandle(w http.ResponseWriter, r *http.Request,
	f func(ctx context.Context, name string, h Handle) error,
) error {
	query := r.URL.Query()
	h, err := ParseHandle(cmp.Or(query.Get("handle"), query.Get("token")))
	if err != nil {
		return badRequest("write the handle of the lock: ?handle=HANDLE")
	}
	return call(w, r, func(ctx context.Context) (any, error) {
		return Token{r.PathValue("name"), h.Token}, f(ctx, r.PathValue("name"), h)
	})
}

// lockStatus is the status of an error of locks; 0: it is none of theirs.
func lockStatus(err error) int {
	switch {
	case errors.As(err, new(*HandleError)):
		return http.StatusForbidden
	case errors.Is(err, lease.ErrHeld), errors.Is(err, lease.ErrExpired):
		return http.StatusConflict
	case errors.Is(err, lease.ErrEarly):
		return http.StatusTooEarly
	case errors.Is(err, lease.ErrFull):
		return http.StatusRequestEntityTooLarge
	}
	return 0
}
