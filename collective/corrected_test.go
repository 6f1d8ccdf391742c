package collective

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// digit is a task's input: a digit of its own, in octal, which shows how often it
// was counted.
func digit(task int) []uint64 { return []uint64{1 << (3 * task)} }

// correctedUnder runs a corrected call while some processes are killed and no view is
// installed, and returns what is wrong with the result.
func correctedUnder(t *testing.T, size, f int, all bool, seed uint64,
	kills map[int]int,
) (messages int, events []int, err error) {
	n := newNetwork(t, size, seed)
	defer n.close()
	n.noViews = true
	n.doom(kills)
	ctx := soon(t)
	got := make([][]uint64, size)
	root := correctedRoot(size, all)
	errs := n.each(func(w Comm) (err error) {
		if all {
			got[w.Rank()], err = Allreduce(ctx, w, digit(w.Rank()), Sum[uint64](), Corrected(f))
		} else {
			got[w.Rank()], err = Reduce(ctx, w, root, digit(w.Rank()), Sum[uint64](), Corrected(f))
		}
		return err
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for r := range size {
		if n.dead[r] || !all && r != root {
			continue
		}
		if errs[r] != nil || len(got[r]) != 1 || got[r][0] != got[root][0] {
			return 0, nil, fmt.Errorf("rank %d got %o, the root %o: %w", r, got[r], got[root], errs[r])
		}
		for task := range size {
			if count := got[r][0] >> (3 * task) & 7; count > 1 || count == 0 && !n.dead[task] {
				return 0, nil, fmt.Errorf("rank %d got %o: task %d is counted %d times", r, got[r], task, count)
			}
		}
	}
	return n.sent, n.events, nil
}

// correctedRoot is the root of a corrected Allreduce or Reduce.
func correctedRoot(size int, all bool) int {
	if all {
		return 0
	}
	return size / 2
}

// formula is how many messages up-correction and the tree take.
func formula(n, f int) int {
	a := (n-1)%(f+1) + 1
	return f*(f+1)*((n-1)/(f+1)) + a*(a-1) + n - 1
}

// "Messages: f(f+1)·⌊(n−1)/(f+1)⌋ + a(a−1) for up-correction […] and n−1 for the
// tree": the Allreduce takes twice as many, because its broadcast goes the same
// ways back.
func TestCorrectedMessages(t *testing.T) {
	for size := 1; size <= 20; size++ {
		for f := range 5 {
			for _, all := range []bool{false, true} {
				messages, _, err := correctedUnder(t, size, f, all, 1, nil)
				want := formula(size, f)
				if all {
					want *= 2
				}
				if err != nil || messages != want {
					t.Errorf("%d processes, f = %d, all %v: %d messages, want %d: %v", size, f, all, messages, want, err)
				}
			}
		}
	}
}

// Up to f dead, before or during it, cost nothing: all sets of victims, each dead
// from the start, or killed at each of its events while the other is dead from the
// start or killed at some event.
func TestCorrectedWithUpToFDead(t *testing.T) {
	count := 0
	for size := 2; size <= 11; size++ {
		for f := 1; f <= 2; f++ {
			if f == 2 && size > 7 {
				continue // nothing new: f = 1 has all depths of subtrees
			}
			for _, all := range []bool{false, true} {
				_, events, err := correctedUnder(t, size, f, all, 1, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, kills := range killings(size, f, all, events) {
					count++
					if (testutil.RaceEnabled || testing.Short()) && count%10 > 0 {
						continue
					}
					if _, _, err := correctedUnder(t, size, f, all, uint64(count), kills); err != nil {
						t.Fatalf("%d processes, f = %d, all %v, case %d, kills %v: %v", size, f, all, count, kills, err)
					}
				}
			}
		}
	}
	t.Logf("%d cases", count)
}

// killings are the ways to kill up to f of the others than the root.
func killings(size, f int, all bool, events []int) (ways []map[int]int) {
	root := correctedRoot(size, all)
	rng := rand.New(rand.NewPCG(uint64(size), uint64(f)))
	for a := range size {
		if a == root {
			continue
		}
		for at := range events[a] + 1 {
			ways = append(ways, map[int]int{a: at})
			for b := range size {
				if f == 2 && b != root && b != a {
					ways = append(ways, map[int]int{a: at, b: rng.IntN(events[b] + 1)}, map[int]int{a: at, b: 0})
				}
			}
		}
	}
	return ways
}
