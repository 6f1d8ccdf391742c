package collective

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// A Restore that returns what the task passes to the next call, as one does that reads
// state which the program has updated in place: either all survivors get the same results,
// or the job ends with a DivergedError that names the task. Results never differ silently.
func TestWrongRestoreNeverDivergesSilently(t *testing.T) {
	found, cases := 0, 0
	for _, size := range []int{2, 3, 4} {
		for _, short := range []bool{false, true} {
			c := trial{size: size, short: short}
			events, _ := wrongRestore(t, c)
			for victim := range size {
				for at := range events[victim] + 1 {
					c.kills, c.seed = map[int]int{victim: at}, uint64(at)
					_, diverged := wrongRestore(t, c)
					cases++
					if diverged {
						found++
					}
				}
			}
		}
	}
	t.Logf("%d cases, found in %d", cases, found)
	if found == 0 {
		t.Error("no case had a divergence to find")
	}
}

// wrongRestore runs a trial whose restored inputs are wrong, and reports whether the
// survivors were told.
func wrongRestore(t *testing.T, c trial) (events []int, diverged bool) {
	t.Helper()
	n := newNetworkOf(t, c.size, c.seed, engineConfig(c.short))
	defer n.close()
	n.doom(c.kills)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	results := make([]string, c.size)
	errs := n.each(func(e Comm) error {
		for round := range 3 {
			out, err := Allreduce(ctx, e, fractions(e.Rank(), round), Sum[float64](),
				restoreOf(func(task int) []float64 { return fractions(task, round+1) }))
			if err != nil {
				return err
			}
			results[e.Rank()] += fmt.Sprint(out)
		}
		if err := n.engines[e.Rank()].Settle(ctx); err != nil { // as World.Finalize does
			return err
		}
		if err := Barrier(ctx, e); err != nil {
			return err
		}
		if d := n.engines[e.Rank()].Divergence(); d != nil {
			return (*DivergedError)(d)
		}
		return nil
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	first, same := -1, true
	for r, err := range errs {
		if n.dead[r] {
			continue
		}
		if first < 0 {
			first = r
		}
		var d *DivergedError
		switch {
		case errors.As(err, &d):
			diverged = true
			if _, killed := c.kills[d.Task]; !killed {
				t.Errorf("%v: rank %d: %v names task %d", c.kills, r, err, d.Task)
			}
		case err != nil:
			t.Errorf("%v: rank %d: %v", c.kills, r, err)
		case results[r] != results[first]:
			same = false
		}
	}
	if !same && !diverged {
		t.Errorf("%d processes, kills %v: results differ, and no process says so", c.size, c.kills)
	}
	return n.events, diverged
}
