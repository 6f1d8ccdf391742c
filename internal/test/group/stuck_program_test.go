package group_test

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// A handler that does not return keeps its own process from messages, and nothing else: no
// member is taken for unresponsive, this one included, although the goroutine that called the
// handler reads a connection.
func TestStuckHandlerHarmsNoMember(t *testing.T) {
	const size, timeout = 3, 300 * time.Millisecond
	release := make(chan struct{})
	groups := joinWhole(t, size, func(c *pleach.Config) {
		c.Detection.SuspicionTimeout = timeout
		c.OnMessage = ignore
		if c.Rank == 1 {
			c.OnMessage = func(pleach.Message, error) { <-release }
		}
	})
	t.Cleanup(func() { close(release) }) // before the groups are closed
	for range 3 {                        // by each of its two neighbors, and by itself
		for _, g := range groups {
			if err := g.Broadcast(t.Context(), []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	pace := time.Tick(timeout / 10)
	for end := time.Now().Add(5 * timeout); time.Now().Before(end); <-pace {
		for _, g := range groups {
			if v := g.View(); v.Number != 1 || g.Err() != nil {
				t.Fatalf("rank %d: %v, %v", g.Rank(), v, g.Err())
			}
		}
	}
	if _, err := groups[0].WaitStable(t.Context()); err != nil {
		t.Error("the stuck process does not acknowledge:", err)
	}
}
