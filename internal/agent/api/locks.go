package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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
	Renew(ctx context.Context, name string, token uint64) error
	Unlock(ctx context.Context, name string, token uint64) error
}

// Lock is a lock that is held.
type Lock struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	// Token is the fencing token: higher than that of every earlier holder.
	Token uint64 `json:"token"`
	// TTL is for how many seconds the lock is held without a renewal.
	TTL float64 `json:"ttl"`
	// Expired says that the holder has not renewed it in time, and that another may take it.
	Expired bool `json:"expired,omitempty"`
}

// LockList is all locks of the group, in order of their names.
type LockList struct {
	Locks []Lock `json:"locks"`
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

// lock takes a lock. Those that wait are counted as subscribers are.
func (s *Server) lock(w http.ResponseWriter, r *http.Request) error {
	name, query, ttl := r.PathValue("name"), r.URL.Query(), DefaultTTL
	if text := query.Get("ttl"); text != "" {
		var err error
		if ttl, err = time.ParseDuration(text); err != nil || ttl < MinTTL || ttl > MaxTTL {
			return badRequest("ttl=%s: write a time from %v to %v, as in 10s", text, MinTTL, MaxTTL)
		}
	}
	if name == "" || len(name) > maxHolder || len(query.Get("holder")) > maxHolder {
		return badRequest("a lock and its holder have names of at most %d bytes", maxHolder)
	}
	if s.subscribers.Add(1) > maxSubscribers {
		s.subscribers.Add(-1)
		return &statusError{http.StatusTooManyRequests, fmt.Errorf("there are %d subscribers already", maxSubscribers)}
	}
	defer s.subscribers.Add(-1)
	return call(w, r, func(ctx context.Context) (any, error) {
		return s.agent.Lock(ctx, name, query.Get("holder"), ttl, query.Get("wait") == "true")
	})
}

func (s *Server) renewLock(w http.ResponseWriter, r *http.Request) error {
	return s.withToken(w, r, s.agent.Renew)
}

func (s *Server) unlock(w http.ResponseWriter, r *http.Request) error {
	return s.withToken(w, r, s.agent.Unlock)
}

// Token is the reply to a renewal and to a release.
type Token struct {
	Name  string `json:"name"`
	Token uint64 `json:"token"`
}

// withToken calls f with the lock and the token that a request names.
func (s *Server) withToken(w http.ResponseWriter, r *http.Request, f func(ctx context.Context, name string, token uint64) error) error {
	token, err := strconv.ParseUint(r.URL.Query().Get("token"), 10, 64)
	if err != nil {
		return badRequest("write the token of the lock: ?token=TOKEN")
	}
	return call(w, r, func(ctx context.Context) (any, error) {
		return Token{r.PathValue("name"), token}, f(ctx, r.PathValue("name"), token)
	})
}

// lockStatus is the status of an error of locks; 0: it is none of theirs.
func lockStatus(err error) int {
	switch {
	case errors.Is(err, lease.ErrHeld), errors.Is(err, lease.ErrExpired):
		return http.StatusConflict
	case errors.Is(err, lease.ErrFull):
		return http.StatusRequestEntityTooLarge
	}
	return 0
}
