package collective

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/collective/loggp"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// everyLevel selects two levels wherever the placement allows it.
func everyLevel() engine.Levels {
	return engine.Levels{Barrier: true, Broadcast: true, Reduce: engine.Never, Allreduce: engine.Never}
}

// levelsConfig places the tasks of a config, and selects two levels.
func levelsConfig(c engine.Config, hosts []string) engine.Config {
	if c.Thresholds == (engine.Thresholds{}) {
		c.Thresholds = engine.ThresholdsOf(loggp.Model{Network: loggp.Standard(), Layout: loggp.Even(len(hosts), 1)})
	}
	c.Placement, c.Thresholds.Levels = engine.NewPlacement(hosts), everyLevel()
	return c
}

// levelSamples are the collectives that have two levels.
func levelSamples(hosts []string) (calls []sample) {
	for _, s := range samples() {
		switch s.name {
		case "allreduce-floats", "allreduce-parts":
			if engine.NewPlacement(hosts).Blocks() {
				s.want = func(_, _, round int) string { return fmt.Sprint(floatSumByLevels(hosts, round)) }
			}
			calls = append(calls, s)
		case "barrier", "broadcast", "allreduce", "reduce", "reduce-numbers":
			calls = append(calls, s)
		}
	}
	return calls
}

// floatSumByLevels is the sum as two levels have it, bit by bit: along a binomial tree in each
// host, and then by recursive doubling.
func floatSumByLevels(hosts []string, round int) []float64 {
	var sums [][]float64
	for from := 0; from < len(hosts); {
		to := from + 1
		for to < len(hosts) && hosts[to] == hosts[from] {
			to++
		}
		var host [][]float64
		for task := from; task < to; task++ {
			host = append(host, fractions(task, round))
		}
		for mask := 1; mask < len(host); mask *= 2 {
			for i := 0; i+mask < len(host); i += 2 * mask {
				Sum[float64]().Combine(host[i], host[i], host[i+mask])
			}
		}
		sums, from = append(sums, host[0]), to
	}
	return foldedSum(sums)
}

// hostNames returns a host for each byte of a name.
func hostNames(names string) []string { return strings.Split(names, "") }

// Each collective by two levels, each process as victim, killed at each of its events: leaders
// and others, of hosts of different sizes, in blocks and mixed.
func TestEveryVictimOfTwoLevels(t *testing.T) {
	placements := []string{"aab", "aabb", "abbb", "abab", "aaabcc", "aaaabbbb"}
	if testutil.RaceEnabled || testing.Short() {
		placements = placements[:4]
	}
	count := 0
	for _, names := range placements {
		hosts := hostNames(names)
		calls := levelSamples(hosts)
		for i, s := range calls {
			c := trial{calls: []sample{s, calls[(i+1)%len(calls)]}, size: len(hosts), hosts: hosts}
			count += c.everyVictim(t, names+"-"+s.name)
			if s.sized {
				c.calls, c.short = []sample{s, s}, true
				count += c.everyVictim(t, names+"-"+s.name+"-short")
			}
		}
	}
	t.Logf("%d cases", count)
}

// Random placements and several victims, whole hosts among them.
func TestManyVictimsOfTwoLevels(t *testing.T) {
	count := 300
	if testutil.RaceEnabled || testing.Short() {
		count = 40
	}
	for seed := range uint64(count) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := &trial{what: fmt.Sprint(seed), size: 3 + rng.IntN(14), seed: seed, kills: make(map[int]int), short: seed%3 == 0}
		for range c.size {
			c.hosts = append(c.hosts, string(rune('a'+rng.IntN(max(2, c.size/3)))))
		}
		if seed%4 > 0 {
			slices.Sort(c.hosts)
		}
		if engine.NewPlacement(c.hosts) == nil {
			continue
		}
		calls := levelSamples(c.hosts)
		for range 1 + rng.IntN(6) {
			c.calls = append(c.calls, calls[rng.IntN(len(calls))])
		}
		host := c.hosts[rng.IntN(c.size)]
		for victim, h := range c.hosts {
			if (h == host || rng.IntN(8) == 0) && len(c.kills) < c.size-1 {
				c.kills[victim] = rng.IntN(10*len(c.calls) + 1)
			}
		}
		if !c.check(t) {
			return
		}
	}
}

// With two levels only leaders send messages to other hosts, and as few as there can be.
func TestLevelsSaveMessagesBetweenHosts(t *testing.T) {
	const size, perHost = 16, 4
	var hosts []string
	for task := range size {
		hosts = append(hosts, fmt.Sprint(task/perHost))
	}
	for name, want := range map[string]int{"barrier": 4 * 2, "broadcast": 3, "reduce-numbers": 3, "allreduce": 4 * 2} {
		for _, s := range levelSamples(hosts) {
			if s.name != name {
				continue
			}
			n := newNetworkOf(t, size, 1, levelsConfig(engine.Config{}, hosts))
			between := 0
			n.onSend = func(from, to int) {
				if hosts[from] != hosts[to] {
					between++
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			errs := n.each(func(w Comm) error { return s.run(ctx, w, 0, func(int, string) {}) })
			cancel()
			n.close()
			if err := errors.Join(errs...); err != nil || between != want {
				t.Errorf("%s: %d messages between hosts, want %d; %v", name, between, want, err)
			}
		}
	}
}

// Processes that would select algorithms by different figures say so.
func TestDifferentNetworksMismatch(t *testing.T) {
	n := newNetworkWith(t, 4, 1, engine.Config{}, func(rank int, c *engine.Config) {
		if rank == 1 {
			c.Network.Inside.Bandwidth = 1e6
		}
	})
	defer n.close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := n.each(func(w Comm) error { return without(Allreduce(ctx, w, []int64{1}, Sum[int64]())) })
	var mismatch *MismatchError
	if !errors.As(errors.Join(errs...), &mismatch) {
		t.Errorf("%v, want a mismatch", errs)
	}
}

func without[Out any](_ Out, err error) error { return err }

// A communicator that Shrink derives has the hosts of its processes.
func TestShrinkKeepsHosts(t *testing.T) {
	n := newNetworkOf(t, 6, 1, engine.Config{Placement: engine.NewPlacement(hostNames("aabbcc"))})
	defer n.close()
	n.doom(map[int]int{1: 0})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := n.each(func(w Comm) error {
		if w.Rank() == 1 {
			return nil
		}
		sub, err := w.Shrink(ctx)
		if err != nil {
			return err
		}
		sum, err := Allreduce(ctx, sub, []int{w.Rank()}, Sum[int]())
		if err == nil && (sum[0] != 14 || !strings.Contains(fmt.Sprint(sub.Algorithms()), byLevels)) {
			return fmt.Errorf("%v by %v", sum, sub.Algorithms())
		}
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
