package detect

// A probe dials a peer to find out whether its process still listens. This file has
// the schedule of dials and the classification of their results.

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// probeResult is what a dial has shown.
type probeResult int

const (
	inconclusive probeResult = iota // A local failure: it says nothing about the peer.
	reachable                       // The host accepted the connection.
	refused                         // The host refused it: no process is there.
	silent                          // No answer.
)

// probeDelays are the delays before each dial of a round. A reachable peer is
// dialed again, because a killed process often still listens for an instant after
// its connections break.
func probeDelays() []time.Duration {
	return []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}
}

// probe finds out whether a peer is there. At most one probe per link runs.
func (c *Connections) probe(ctx context.Context, p Peer, l *link, loss error) {
	c.mu.Lock()
	wait := time.Until(l.since.Add(c.config.StartTimeout))
	if l.up || p.Incarnation != 0 {
		wait = 0 // The process has been started.
	}
	c.mu.Unlock()
	if !sleep(ctx, p.Pause) || wait > p.Pause && !c.awaitStart(ctx, p, l, wait-p.Pause, loss) {
		return
	}
	for c.probeRound(ctx, p, loss); c.probeAgain(ctx, l); {
		c.probeRound(ctx, p, loss)
	}
}

// awaitStart waits until the time for a peer to start is over. A peer that listens before
// it runs is dialed meanwhile, at once and after each Down. awaitStart returns false if
// the peer refuses that, which it reports, or the probe has ended.
func (c *Connections) awaitStart(ctx context.Context, p Peer, l *link, wait time.Duration, loss error) bool {
	if !c.config.Listening {
		return sleep(ctx, wait)
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		if result, err := c.probeOnce(ctx, p.Address); result == refused {
			c.report(ctx, func() {
				c.tracker.Suspect(p, ErrGone, cause(loss, err))
				l.stop()
			})
			return false
		}
		select {
		case <-l.news:
		case <-over.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// probeAgain ends a probe, unless another Down came meanwhile.
func (c *Connections) probeAgain(ctx context.Context, l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return false // Up, Watch or Close has ended it.
	}
	if l.again {
		l.again = false
		return true
	}
	l.stop()
	return false
}

// probeRound dials a few times, and reports what it finds.
func (c *Connections) probeRound(ctx context.Context, p Peer, loss error) {
	before := inconclusive
	delays := probeDelays()
	for i := 0; i < len(delays) && sleep(ctx, delays[i]); i++ {
		result, err := c.probeOnce(ctx, p.Address)
		switch {
		case result == refused:
			c.report(ctx, func() { c.tracker.Suspect(p, ErrGone, cause(loss, err)) })
			return
		case result == silent && before == silent:
			c.report(ctx, func() { c.tracker.Suspect(p, ErrSilent, cause(loss, err)) })
			return
		case result == reachable:
			c.report(ctx, func() { c.tracker.answered(p) })
		case i == len(delays)-1:
			i-- // Not decided yet.
		}
		before = result
	}
}

// report passes a result on, unless the probe has ended meanwhile: a connection
// proves more.
func (c *Connections) report(ctx context.Context, say func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		say()
	}
}

// cause joins the error of the dial with that of the lost connection.
func cause(loss, err error) error {
	if loss == nil {
		return err
	}
	return fmt.Errorf("%w (after %w)", err, loss)
}

// probeOnce dials once. A dial that took longer than its timeout was made by a
// process that was itself stopped or starved. Such a process must not take
// healthy peers for dead, so the dial is inconclusive.
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

// classify returns what the result of a dial shows.
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

// dialAndClose opens a connection and closes it. The transport's handshake, not
// the probe, finds out which process listens.
func (c *Connections) dialAndClose(ctx context.Context, address string) error {
	conn, err := c.config.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// sleep waits, and returns false if the context ends first.
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
