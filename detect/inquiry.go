package detect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// finding is what dialing a peer has shown.
type finding int

const (
	nothing finding = iota // The trouble is ours: it says nothing about the peer.
	present                // Its host took the connection.
	absent                 // Its host refused: no process is there.
	silence                // No answer.
)

// looks are the pauses before each look at a peer. One that is there is looked
// at again, because a process that was killed often still listens for an instant
// when its connections break.
func looks() []time.Duration {
	return []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}
}

// inquire finds out whether a peer is there. At most one inquiry per link runs.
func (c *Connections) inquire(ctx context.Context, p Peer, l *link, loss error) {
	c.mu.Lock()
	grace := time.Until(l.since.Add(c.config.StartGrace))
	if l.up || p.Incarnation != 0 {
		grace = 0 // It has been started.
	}
	c.mu.Unlock()
	if !pause(ctx, max(grace, p.Pause)) {
		return
	}
	for c.inquireOnce(ctx, p, loss); c.moreNews(ctx, l); {
		c.inquireOnce(ctx, p, loss)
	}
}

// moreNews ends an inquiry, unless there was more news meanwhile.
func (c *Connections) moreNews(ctx context.Context, l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return false // Somebody else has ended it.
	}
	if l.again {
		l.again = false
		return true
	}
	l.end()
	return false
}

// inquireOnce looks a few times, and says what it has found.
func (c *Connections) inquireOnce(ctx context.Context, p Peer, loss error) {
	before := nothing
	pauses := looks()
	for i := 0; i < len(pauses) && pause(ctx, pauses[i]); i++ {
		found, err := c.look(ctx, p.Address)
		switch {
		case found == absent:
			c.conclude(ctx, func() { c.herald.suspect(p, ErrGone, evidence(loss, err)) })
			return
		case found == silence && before == silence:
			c.conclude(ctx, func() { c.herald.suspect(p, ErrSilent, evidence(loss, err)) })
			return
		case found == present:
			c.conclude(ctx, func() { c.herald.answered(p) })
		case i == len(pauses)-1:
			i-- // Nothing is decided yet.
		}
		before = found
	}
}

// conclude says what was found, unless the inquiry has ended meanwhile: because
// there is a connection, which proves more.
func (c *Connections) conclude(ctx context.Context, say func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		say()
	}
}

// evidence is what was seen of a suspect, and why it was looked at.
func evidence(loss, err error) error {
	if loss == nil {
		return err
	}
	return fmt.Errorf("%w (after %w)", err, loss)
}

// look dials once. A look that took longer than it may was made by a process that
// was itself stopped or starved meanwhile. Such a process must not take
// healthy peers for dead, so what it saw counts for nothing.
func (c *Connections) look(ctx context.Context, address string) (finding, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nothing, ctx.Err()
	}
	limit := c.config.DialTimeout
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	err := c.dial(limited, address)
	found := judge(err)
	if found == silence && time.Since(start) > limit+limit/4 {
		found = nothing
	}
	return found, err
}

// judge says what the outcome of dialing shows.
func judge(err error) finding {
	switch {
	case err == nil:
		return present
	case errors.Is(err, syscall.ECONNREFUSED):
		return absent
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.EADDRNOTAVAIL):
		return nothing // No descriptor, memory or port is left here.
	default:
		return silence
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

// pause waits. It returns false if that was interrupted.
func pause(ctx context.Context, d time.Duration) bool {
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
