//go:build unix

package faults

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Case 10: all members are started by one command, in any order, and the first one is
// killed and started again by it. There is one group all the time.
func TestCase10OneCommandStartsAll(t *testing.T) {
	const n = 5
	ms := newMembers(t, n, 2, nil)
	began := time.Now()
	ms.start(ms.all()...)
	view, _ := ms.await(ms.all(), ms.all())
	begun := time.Since(began)
	if !strings.HasPrefix(view, "1 ") {
		t.Errorf("the first view that all are in is %s", view)
	}
	ms.kill(0)
	ms.await([]int{1, 2, 3, 4}, []int{1, 2, 3, 4})
	ms.start(0)
	_, back := ms.await(ms.all(), ms.all())

	// Both seeds are restarted at once, so that each finds only the other.
	ms.kill(0, 1)
	ms.await([]int{2, 3, 4}, []int{2, 3, 4})
	ms.start(0, 1)
	_, found := ms.await(ms.all(), ms.all())

	// After a full stop they begin anew.
	ms.kill(ms.all()...)
	restarted := time.Now()
	ms.start(4, 3, 2, 1, 0)
	view, _ = ms.await(ms.all(), ms.all())
	if !strings.HasPrefix(view, "1 ") {
		t.Errorf("after a full restart the first view that all are in is %s", view)
	}
	figures(t, map[string]any{
		"case": 10, "members": n, "begun_ms": begun.Milliseconds(), "rejoined_ms": back.Milliseconds(),
		"seeds_rejoined_ms": found.Milliseconds(), "restarted_ms": time.Since(restarted).Milliseconds(),
	})
}

// Case 10: processes, but no majority, die and are started again while the group begins.
// In the end all are in one group.
func TestCase10KilledWhileBeginning(t *testing.T) {
	const n = 5
	var took []int64
	for round := range 5 {
		ms := newMembers(t, n, 1+round%n, nil)
		rng := rand.New(rand.NewPCG(uint64(round), 10))
		ms.start(ms.all()...)
		for range 2 {
			time.Sleep(time.Duration(rng.Int64N(int64(400 * time.Millisecond)))) // when does not matter
			victim := rng.IntN(n)
			ms.kill(victim)
			ms.start(victim)
		}
		_, after := ms.await(ms.all(), ms.all())
		took = append(took, after.Milliseconds())
		ms.kill(ms.all()...)
	}
	figures(t, map[string]any{"case": 10, "members": n, "settled_ms": took})
}
