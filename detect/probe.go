package detect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// probeResult is what dialing a peer has shown.
type probeResult int

const (
	inconclusive probeResult = iota // The trouble is ours: it says nothing about the peer.
	reachable                       // Its host took the connection.
	refused                         // Its host refused: no process is there.
	silent                          // No answer.
)

// probeDelays are the pauses before each look at a peer. One that is there is looked
// at again, because a process that was killed often still listens for an instant
// when its connections break.
func probeDelays() []time.Duration {
	return []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}
}

// probe finds out whether a peer is there. At most one inquiry per link runs.
func (c *Connections) probe(ctx context.Context, p Peer, l *link, loss error) {
	c.mu.Lock()
	wait := time.Until(l.since.Add(c.config.StartTimeout))
	if l.up || p.Incarnation != 0 {
		wait = 0 // It has been started.
	}
	c.mu.Unlock()
	if !sleep(ctx, max(wait, p.Pause)) {
		return
	}
	for c.probeRound(ctx, p, loss); c.probeAgain(ctx, l); {
		c.probeRound(ctx, p, loss)
	}
}

// probeAgain ends an inquiry, unless there was more news meanwhile.
func (c *Connections) probeAgain(ctx context.Context, l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return false // Somebody else has ended it.
	}
	if l.again {
		l.again = false
		return true
	}
	l.stop()
	return false
}

// probeRound looks a few times, and says what it has found.
func (c *Connections) probeRound(ctx context.Context, p Peer, loss error) {
	before := inconclusive
	delays := probeDelays()
	for i := 0; i < len(delays) && sleep(ctx, delays[i]); i++ {
		result, err := c.probeOnce(ctx, p.Address)
		switch {
		case result == refused:
			c.report(ctx, func() { c.tracker.suspect(p, ErrGone, cause(loss, err)) })
			return
		case result == silent && before == silent:
			c.report(ctx, func() { c.tracker.suspect(p, ErrSilent, cause(loss, err)) })
			return
		case result == reachable:
			c.report(ctx, func() { c.tracker.answered(p) })
		case i == len(delays)-1:
			i-- // Nothing is decided yet.
		}
		before = result
	}
}

// report says what was found, unless the inquiry has ended meanwhile: because
// there is a connection, which proves more.
func (c *Connections) report(ctx context.Context, say func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		say()
	}
}

// cause is what was seen of a suspect, and why it was looked at.
func cause(loss, err error) error {
	if loss == nil {
		return err
	}
	return fmt.Errorf("%w (after %w)", err, loss)
}

// probeOnce dials once. A look that took longer than it may was made by a process that
// was itself stopped or starved meanwhile. Such a process must not take
// healthy peers for dead, so what it saw counts for nothing.
func (c *Connections) probeOnce(ctx context.Context, address string) (probeResult, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return inconclusive, ctx.Err()
	}
	limit := c.config.DialTimeout
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	err := c.dial(limited, address)
	result := classify(err)
	if result == silent && time.Since(start) > limit+limit/4 {
		result = inconclusive
	}
	return result, err
}

// classify says what the outcome of dialing shows.
func classify(err error) probeResult {
	switch {
	case err == nil:
		return reachable
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.EADDRNOTAVAIL):
		return inconclusive // No descriptor, memory or port is left here.
	default:
		return silent
	}
}

// dialAndClose opens a connection and closes it: who is there is for the
// transport's handshake to find out.
func dialAndClose(ctx context.Context, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// sleep waits. It returns false if that was interrupted.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
