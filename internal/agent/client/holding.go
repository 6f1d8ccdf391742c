package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pleach-go/pleach/internal/agent/api"
)

// Holding is a lock that this process holds by renewing it. The process counts the TTL from before
// each renewal, so that its time is over before another one can have the lock, whatever happens to
// the agent.
type Holding struct {
	api.Lock
	client       *Client
	ttl          time.Duration
	ending, lost chan struct{}
	stop         context.CancelFunc
	done         chan struct{}
}

// renewals are made within a TTL.
const renewals = 3

// unlockTimeout bounds a release.
const unlockTimeout = 5 * time.Second

// Hold takes a lock and renews it until Release.
func (c *Client) Hold(ctx context.Context, r LockRequest) (*Holding, error) {
	lock, err := c.Lock(ctx, r)
	if err != nil {
		return nil, err
	}
	h := &Holding{Lock: lock, client: c, ttl: r.TTL, ending: make(chan struct{}), lost: make(chan struct{}), done: make(chan struct{})}
	began := time.Now() // before any other process can see the renewal
	if err := c.Renew(ctx, h.Name, h.Token, h.ttl); err != nil {
		return nil, errors.Join(err, h.unlock())
	}
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	go h.watch(ctx, began.Add(h.ttl))
	return h, nil
}

// Ending returns a channel that is closed when the lock could not be renewed for so long that a
// fifth of its TTL is left.
func (h *Holding) Ending() <-chan struct{} { return h.ending }

// Lost returns a channel that is closed when the lock is lost.
func (h *Holding) Lost() <-chan struct{} { return h.lost }

// Release releases the lock.
func (h *Holding) Release() error {
	h.stop()
	<-h.done
	return h.unlock()
}

func (h *Holding) unlock() error {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	return h.client.Unlock(ctx, h.Name, h.Token, unlockTimeout)
}

// renewal is how an attempt has ended: the lock is held until then, or another one has it.
type renewal struct {
	until   time.Time
	refused bool
}

// watch closes ending and lost when it is time.
func (h *Holding) watch(ctx context.Context, until time.Time) {
	defer close(h.done)
	defer h.stop()
	renewed := make(chan renewal)
	go h.renew(ctx, renewed)
	for told := false; ; {
		left := time.Until(until)
		if !told {
			left -= h.ttl / 5
		}
		select {
		case r := <-renewed:
			if until = r.until; !r.refused {
				continue
			}
		case <-time.After(left):
		case <-ctx.Done():
			return
		}
		if !told {
			told = true
			close(h.ending)
		}
		if !time.Now().Before(until) {
			close(h.lost)
			return
		}
	}
}

// renew renews the lock until ctx ends, or another one has it.
func (h *Holding) renew(ctx context.Context, renewed chan<- renewal) {
	wait := h.ttl / renewals
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, h.ttl/renewals)
		err := h.client.Renew(attempt, h.Name, h.Token, h.ttl/renewals)
		cancel()
		var refused *RefusedError
		r := renewal{until: began.Add(h.ttl)}
		switch wait = h.ttl / renewals; {
		case errors.As(err, &refused) && refused.Status == http.StatusConflict:
			r = renewal{refused: true}
		case err != nil:
			wait = h.ttl / 20
			continue
		}
		select {
		case renewed <- r:
		case <-ctx.Done():
			return
		}
	}
}
