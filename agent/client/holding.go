package client

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/agent/api"
)

// Holding is a lock that this process holds by renewing it. The process counts the TTL from before
// each renewal, so that its time is over before another one can have the lock, whatever happens to
// the agent.
type Holding struct {
	api.Lock
	client       *Client
	ttl          time.Duration
	ending, lost chan struct{}
	renewed      chan struct{}
	until        atomic.Pointer[time.Time]
	stop         context.CancelFunc
	done         chan struct{}
}

// renewals are made within a TTL.
const renewals = 3

// interval is the time between two renewals. Those of a long TTL are made as often as those of the
// default one: a holder that can reach its agent notices that the agents have lost the lock before
// they give it to another one.
func (h *Holding) interval() time.Duration { return min(h.ttl, api.DefaultTTL) / renewals }

// unlockTimeout bounds a release.
const unlockTimeout = 5 * time.Second

// Hold takes a lock and renews it until Release.
func (c *Client) Hold(ctx context.Context, r LockRequest) (*Holding, error) {
	lock, err := c.Lock(ctx, r)
	if err != nil {
		return nil, err
	}
	h := &Holding{
		Lock: lock, client: c, ttl: r.TTL, ending: make(chan struct{}), lost: make(chan struct{}),
		renewed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	began := time.Now() // before any other process can see the renewal
	if err := c.Renew(ctx, &h.Lock, h.ttl); err != nil {
		return nil, errors.Join(err, h.unlock())
	}
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	until := began.Add(h.ttl)
	h.until.Store(&until)
	go h.watch(ctx, until)
	return h, nil
}

// Ending returns a channel that is closed when the lock could not be renewed for so long that a
// fifth of its TTL is left.
func (h *Holding) Ending() <-chan struct{} { return h.ending }

// Lost returns a channel that is closed when the lock is lost.
func (h *Holding) Lost() <-chan struct{} { return h.lost }

// Until is when the lock ends if it is not renewed, and a little before.
func (h *Holding) Until() time.Time { return h.until.Load().Add(-h.ttl / 10) }

// Renewed returns a channel with a value when Until has changed.
func (h *Holding) Renewed() <-chan struct{} { return h.renewed }

// Release releases the lock.
func (h *Holding) Release() error {
	h.stop()
	<-h.done
	return h.unlock()
}

func (h *Holding) unlock() error {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	return h.client.Unlock(ctx, &h.Lock, unlockTimeout)
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
			until = r.until
			if !r.refused {
				h.until.Store(&until)
				select {
				case h.renewed <- struct{}{}:
				default:
				}
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
	wait := h.interval()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, h.interval())
		err := h.client.Renew(attempt, &h.Lock, h.interval())
		cancel()
		var refused *RefusedError
		r := renewal{until: began.Add(h.ttl)}
		switch wait = h.interval(); {
		case errors.As(err, &refused) && refused.Status == http.StatusConflict:
			r = renewal{refused: true}
		case err != nil:
			wait = min(h.ttl, api.DefaultTTL) / 20
			continue
		}
		select {
		case renewed <- r:
		case <-ctx.Done():
			return
		}
	}
}
