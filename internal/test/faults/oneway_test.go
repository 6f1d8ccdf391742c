//go:build unix

package faults

import (
	"strings"
	"testing"
	"time"
)

// Case 37: what one member sends to another one is dropped, and nothing else. The one is
// removed and joins again, less and less often.
func TestCase37OneWayCut(t *testing.T) {
	const watched, most = 10 * time.Second, 10
	ms := newMembers(t, 4, 4, func(_ int, c *memberConfig) { c.Rejoin, c.SuspicionTimeout = true, 500*time.Millisecond })
	ms.onNetwork()
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	before := ms.views(3)
	ms.network.Drop(1, 2)
	time.Sleep(watched)
	views := ms.views(3) - before
	if views == 0 || views > most {
		t.Errorf("%d views in %v, want some and at most %d", views, watched, most)
	}
	figures(t, map[string]any{"case": 37, "watched_ms": watched.Milliseconds(), "views": views})
}

// views is how many views a process has printed.
func (ms *members) views(i int) (n int) {
	for _, line := range ms.running[i].All() {
		if strings.HasPrefix(line, "view ") {
			n++
		}
	}
	return n
}
