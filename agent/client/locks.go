package client

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/agent/api"
)

func lockPath(name string) string { return "/v1/locks/" + inPath(name) }

// LockRequest is what is asked for a lock.
type LockRequest struct {
	Name, Holder string
	TTL          time.Duration
	Wait         bool          // until the lock is free
	Timeout      time.Duration // of the request
}

// Lock takes a lock.
func (c *Client) Lock(ctx context.Context, r LockRequest) (l api.Lock, err error) {
	query := withTimeout(r.Timeout)
	query.Set("holder", r.Holder)
	query.Set("ttl", r.TTL.String())
	if r.Wait {
		query.Set("wait", "true")
	}
	err = c.call(ctx, http.MethodPost, lockPath(r.Name), query, nil, &l)
	return l, err
}

// Renew renews a lock. Its time counts from before the call.
func (c *Client) Renew(ctx context.Context, l *api.Lock, timeout time.Duration) error {
	return c.withHandle(ctx, http.MethodPut, l, timeout)
}

// Unlock releases a lock.
func (c *Client) Unlock(ctx context.Context, l *api.Lock, timeout time.Duration) error {
	return c.withHandle(ctx, http.MethodDelete, l, timeout)
}

// withHandle makes a request of the holder. Agents without handles look at the token.
func (c *Client) withHandle(ctx context.Context, method string, l *api.Lock, timeout time.Duration) error {
	query := withTimeout(timeout)
	query.Set("token", strconv.FormatUint(l.Token, 10))
	if l.Handle != "" {
		query.Set("handle", l.Handle)
	}
	return c.call(ctx, method, lockPath(l.Name), query, nil, new(api.Token))
}

// Locks returns the locks that are held.
func (c *Client) Locks(ctx context.Context) (l api.LockList, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/locks", nil, nil, &l)
	return l, err
}
