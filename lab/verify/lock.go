package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pleach-go/pleach/lease"
)

// Locks are leases. All members contend for each; a holder asks again and again whether the lease
// is valid, and writes down until when it surely was, by the observer's clock.

const (
	locks     = 4
	lockTTL   = time.Second
	lockDrift = 0.05 // the clocks that a nemesis runs differ by less
	lockLook  = 5 * time.Millisecond
	lockLimit = 5 * time.Second
)

// contend acquires a lock, holds it for a while and releases it, over and over.
func (m *member) contend(ctx context.Context, leases *lease.Leases, lock int) {
	name := fmt.Sprint("lock-", lock)
	for pause(ctx, lockLook) {
		acquiring, cancel := context.WithTimeout(ctx, lockLimit)
		held, err := leases.Acquire(acquiring, name)
		cancel()
		if err != nil {
			continue
		}
		e := Event{Type: evHold, At: observe(), Key: lock, Token: held.Token()}
		for looks := m.looks(lock); looks > 0 && ctx.Err() == nil; looks-- {
			now := observe() // before the question: the lease may end right after it
			if !held.Valid() {
				break
			}
			e.Until = now
			m.journal.write(e)
			time.Sleep(lockLook)
		}
		releasing, cancel := context.WithTimeout(context.Background(), callLimit)
		if held.Release(releasing) == nil {
			m.journal.write(Event{Type: evRelease, Key: lock, Token: held.Token()})
		}
		cancel()
	}
}

// looks is how often a holder looks before it releases a lock: a few times, or for several TTLs.
// Some locks are always released soon, so that they change hands often.
func (m *member) looks(lock int) int {
	m.rng.Lock()
	defer m.rng.Unlock()
	if lock%2 == 0 && m.random.IntN(4) == 0 {
		return 200 + m.random.IntN(800)
	}
	return 1 + m.random.IntN(6)
}

// tenure is a lock in the hands of a process.
type tenure struct {
	Event    // with the last Until
	process  string
	released bool
}

// tenures returns the tenures of each lock, by their tokens.
func (c *checker) tenures() map[int][]*tenure {
	byToken := map[uint64]*tenure{}
	for _, h := range c.histories {
		for _, e := range h.events {
			t := byToken[e.Token]
			switch {
			case e.Type == evHold && t == nil:
				byToken[e.Token] = &tenure{Event: e, process: h.process}
			case e.Type == evHold && t.process != h.process:
				c.violated("one holder for each token", e.At, []string{h.process, t.process},
					"%s and %s have held locks by token %d", h.process, t.process, e.Token)
			case e.Type == evHold:
				t.Until = max(t.Until, e.Until)
			case e.Type == evRelease && t != nil:
				t.released = true
			}
		}
	}
	byLock := map[int][]*tenure{}
	for _, t := range slices.SortedFunc(maps.Values(byToken),
		func(a, b *tenure) int { return cmp.Compare(a.Token, b.Token) }) {
		byLock[t.Key] = append(byLock[t.Key], t)
	}
	return byLock
}

// checkLocks: at no time do two processes hold a lock, by the observer's clock, and tokens rise.
// It returns how often locks have changed hands, and how long those had no holder that were not
// released.
func (c *checker) checkLocks() (changes int, vacant []time.Duration) {
	for lock, list := range c.tenures() {
		changes += len(list)
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			switch processes := []string{a.process, b.process}; {
			case b.At < a.At:
				c.violated("tokens of locks rise", b.At, processes, "lock %d: %s has token %d, and later %s the lower token %d",
					lock, b.process, b.Token, a.process, a.Token)
			case b.At < a.Until:
				c.violated("one holder at a time", b.At, processes,
					"lock %d: %s (token %d) still holds it %v after %s (token %d) has got it", lock, a.process, a.Token,
					time.Duration(a.Until-b.At), b.process, b.Token)
			case !a.released:
				vacant = append(vacant, time.Duration(b.At-a.Until))
			}
		}
	}
	return changes, vacant
}
