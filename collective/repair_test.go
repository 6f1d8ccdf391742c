package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// repaired is a run in which a process that meets a failure revokes the communicator, and
// all continue in a smaller one: the program that ULFM was made for.
type repaired struct {
	what    string
	size    int
	kills   map[int]int
	seed    uint64
	options []Option

	mu     sync.Mutex
	worlds map[int][][]int // by rank: members of the worlds that it was in, after the first
	sums   map[int]string  // by rank: of the last world's round
}

// work makes some calls of different kinds, and returns the sum of a last one, in
// which every process counts once.
func (c *repaired) work(ctx context.Context, w Comm) (string, error) {
	for round := range 2 {
		if err := Barrier(ctx, w, c.options...); err != nil {
			return "", err
		}
		if _, err := Broadcast(ctx, w, round%w.Size(), []int{round}, c.options...); err != nil {
			return "", err
		}
	}
	sum, err := Allreduce(ctx, w, []uint64{1 << w.WorldRank(w.Rank())}, Sum[uint64](), c.options...)
	return fmt.Sprint(sum), err
}

// program works until all have come through in one world.
func (c *repaired) program(ctx context.Context, w Comm) error {
	rank := w.Rank()
	for {
		sum, err := c.work(ctx, w)
		var failed *FailedError
		var revoked *RevokedError
		if err != nil && !errors.As(err, &failed) && !errors.As(err, &revoked) {
			return err
		}
		if err != nil {
			w.Revoke()
		}
		fine, agreeErr := Agree(ctx, w, map[bool]uint64{true: 1}[err == nil], Report())
		if agreeErr != nil && !errors.As(agreeErr, &failed) {
			return agreeErr
		}
		if fine == 1 {
			c.mu.Lock()
			c.sums[rank] = sum
			c.mu.Unlock()
			return nil
		}
		w, err = w.Shrink(ctx)
		if err != nil {
			return err
		}
		var members []int
		for r := range w.Size() {
			members = append(members, w.WorldRank(r))
		}
		if w.WorldRank(w.Rank()) != rank {
			return fmt.Errorf("rank %d is told to have been %d", rank, w.WorldRank(w.Rank()))
		}
		c.mu.Lock()
		c.worlds[rank] = append(c.worlds[rank], members)
		c.mu.Unlock()
	}
}

// run returns what is wrong: survivors must have been in the same communicators, and have
// the same sum over the members of the last one.
func (c *repaired) run(t *testing.T) (events []int, err error) {
	c.worlds, c.sums = make(map[int][][]int), make(map[int]string)
	n := newNetwork(t, c.size, c.seed)
	defer n.close()
	n.doom(c.kills)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := n.each(func(w Comm) error { return c.program(ctx, w) })
	n.mu.Lock()
	defer n.mu.Unlock()
	first := slices.Index(n.dead, false)
	worlds := fmt.Sprint(c.worlds[first])
	for r := range c.size {
		switch {
		case n.dead[r]:
		case errs[r] != nil:
			return nil, fmt.Errorf("rank %d: %w", r, errs[r])
		case fmt.Sprint(c.worlds[r]) != worlds || c.sums[r] != c.sums[first]:
			return nil, fmt.Errorf("rank %d was in %v and got %s, rank %d in %v and got %s", r, c.worlds[r], c.sums[r], first,
				worlds, c.sums[first])
		}
	}
	members := make([]int, c.size)
	for r := range members {
		members[r] = r
	}
	if all := c.worlds[first]; len(all) > 0 {
		members = all[len(all)-1]
	}
	want := uint64(0)
	for _, r := range members {
		want |= 1 << r
	}
	for r, dead := range n.dead {
		if !dead && want&(1<<r) == 0 {
			return nil, fmt.Errorf("rank %d lives and is not in the last world %v", r, members)
		}
	}
	if got := c.sums[first]; got != fmt.Sprint([]uint64{want}) {
		return nil, fmt.Errorf("the sum of the world %v is %s, want %d", members, got, want)
	}
	return n.events, nil
}

func (c *repaired) check(t *testing.T) {
	t.Helper()
	if testutil.Case.On() && testutil.Case.Text() != c.what {
		return
	}
	if _, err := c.run(t); err != nil {
		t.Fatalf("%v\nreplay: PLEACH_CASE='%s' go test -run '^%s$' ./collective", err, c.what, t.Name())
	}
}

// Every victim at every step: processes that have noticed get the others out of
// their calls, and all survivors continue in the same smaller communicator.
func TestRepairWithEveryVictimAtEveryStep(t *testing.T) {
	count := 0
	for _, size := range []int{2, 4, 5} {
		clean := &repaired{size: size, options: []Option{Report()}}
		events, err := clean.run(t)
		if err != nil {
			t.Fatalf("%d processes, without failures: %v", size, err)
		}
		for victim := range size {
			for at := range events[victim] + 1 {
				count++
				if (testutil.RaceEnabled || testing.Short()) && count%4 > 0 {
					continue
				}
				c := &repaired{
					what: fmt.Sprintf("%d/%d@%d", size, victim, at),
					size: size, kills: map[int]int{victim: at}, seed: uint64(at), options: clean.options,
				}
				c.check(t)
			}
		}
	}
	t.Logf("%d cases", count)
}

// Several victims at random moments, also while the smaller world is made.
func TestRepairWithManyVictims(t *testing.T) {
	seeds := 300
	switch {
	case testutil.Full.On():
		seeds = 10_000
	case testutil.RaceEnabled || testing.Short():
		seeds = 40
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := &repaired{
			what: fmt.Sprint(seed), size: 8, seed: seed,
			kills: make(map[int]int), options: []Option{Report()},
		}
		for _, victim := range rng.Perm(c.size)[:1+rng.IntN(4)] {
			c.kills[victim] = rng.IntN(90)
		}
		c.check(t)
	}
}

// The process that revokes need not be the one that others wait for: rank 2 revokes, or is
// killed at any step of doing so, while all others wait in calls of any failure mode
// for one that does not come. All live processes get out, and know which rank has revoked.
func TestRevokeEndsAllCalls(t *testing.T) {
	for _, size := range []int{4, 5} {
		for _, s := range samples() {
			if err := revokeDuring(t, size, s, nil); err != nil {
				t.Fatalf("%s, %d processes: %v", s.name, size, err)
			}
		}
		for victim := range size {
			for at := range 3 * size {
				if err := revokeDuring(t, size, samples()[at%len(samples())], map[int]int{victim: at}); err != nil {
					t.Fatalf("%d processes, rank %d killed at %d: %v", size, victim, at, err)
				}
			}
		}
	}
}

// revokeDuring has all but rank 1 call something that cannot end without it, and
// rank 2, or after its death another one, revoke.
func revokeDuring(t *testing.T, size int, s sample, kills map[int]int) error {
	n := newNetwork(t, size, 1)
	defer n.close()
	n.doom(kills)
	ctx := soon(t)
	errs := n.each(func(w Comm) error {
		err := Barrier(ctx, w)
		for round := 0; err == nil && w.Rank() != 1 && w.Rank() != 2; round++ {
			err = s.run(ctx, w, round, func(int, string) {})
			if slices.Contains(w.Failed(), 1) {
				break // it is stood in for: calls would go on for ever
			}
		}
		if w.Rank() == 1 && err == nil { // it is busy elsewhere
			testutil.Within(patience, func() bool { return !w.alive() || w.revoked() || slices.Contains(w.Failed(), 2) })
		}
		if w.Rank() != 1 || err != nil || !w.revoked() {
			w.Revoke()
		}
		_, agreeErr := Agree(ctx, w, 0) // works, and all come to it
		return errors.Join(agreeErr, Barrier(ctx, w))
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for r, err := range errs {
		var revoked *RevokedError
		switch {
		case n.dead[r]:
		case !errors.As(err, &revoked):
			return fmt.Errorf("rank %d: %w", r, err)
		case kills == nil && revoked.By != 2:
			return fmt.Errorf("rank %d says that rank %d has revoked: %w", r, revoked.By, err)
		}
	}
	return nil
}

// revoked reports whether the process knows.
func (c Comm) revoked() bool { return c.Progress()[0].Revoked }

// Agree tells of failures until all have acknowledged them, and all the same.
func TestAgreeReportsWhatIsNotAcknowledged(t *testing.T) {
	for _, size := range []int{4, 5} {
		for victim := range size {
			for at := range 6 * size {
				if err := acknowledge(t, size, victim, at); err != nil {
					t.Fatalf("%d processes, rank %d killed at %d: %v", size, victim, at, err)
				}
			}
		}
	}
}

func acknowledge(t *testing.T, size, victim, at int) error {
	n := newNetwork(t, size, uint64(at))
	defer n.close()
	n.doom(map[int]int{victim: at})
	ctx := soon(t)
	reported := make([]string, size)
	errs := n.each(func(w Comm) error {
		// Until the failure is known to all, and one agreement beyond.
		for known := uint64(0); ; {
			v, err := Agree(ctx, w, known<<1|1, Report())
			var failed *FailedError
			if err != nil && (!errors.As(err, &failed) || !slices.Equal(failed.Ranks, []int{victim})) {
				return err
			}
			reported[w.Rank()] += fmt.Sprint(v, err != nil, " ")
			if v == 3 {
				return err // all had acknowledged: nothing to report
			}
			if len(w.Failed()) > 0 && w.Rank()%2 == 0 || err != nil {
				w.AckFailed()
				known = 1
			}
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	first := slices.Index(n.dead, false)
	for r, err := range errs {
		if n.dead[r] {
			continue
		}
		if err != nil || reported[r] != reported[first] {
			return fmt.Errorf("rank %d: %w; reported %q, to rank %d %q", r, err, reported[r], first, reported[first])
		}
	}
	return nil
}
