package collective

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// wish is what a rank wants: every rank lacks a bit of its own.
func wish(rank, round int) uint64 { return ^(1 << (rank + round)) }

// agreeUnder has all processes agree several times while some are killed, and returns
// what is wrong. All processes that got a result, even those that died later, got the same.
func agreeUnder(t *testing.T, size, rounds int, seed uint64, kills map[int]int) error {
	n := newNetwork(t, size, seed)
	defer n.close()
	n.doom(kills)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := make([][]uint64, size)
	errs := n.each(func(w Comm) error {
		for round := range rounds {
			v, err := Agree(ctx, w, wish(w.Rank(), round))
			if err != nil {
				return err
			}
			got[w.Rank()] = append(got[w.Rank()], v)
		}
		return nil
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for round := range rounds {
		var first *uint64
		all := ^uint64(0)
		for r := range size {
			all &= wish(r, round)
		}
		for r, values := range got {
			if len(values) <= round {
				if !n.dead[r] {
					return fmt.Errorf("rank %d lives, and failed in round %d: %w", r, round, errs[r])
				}
				continue
			}
			v := values[round]
			if first == nil {
				first = &v
			}
			if v != *first || v&^wish(r, round) != 0 || all&^v != 0 {
				return fmt.Errorf("round %d: rank %d got %#x, another %#x; all want %#x", round, r, v, *first, all)
			}
		}
	}
	return nil
}

func TestAgreeWithEveryVictimAtEveryStep(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5} {
		for victim := range size {
			for at := range 5 * size {
				kills := map[int]int{victim: at}
				if size == 1 || at == 0 {
					kills = nil
				}
				if err := agreeUnder(t, size, 2, uint64(at), kills); err != nil {
					t.Fatalf("%d processes, kills %v: %v", size, kills, err)
				}
			}
		}
	}
}

func TestAgreeWithManyVictims(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		size := 2 + rng.IntN(9)
		kills := make(map[int]int)
		for _, victim := range rng.Perm(size)[:rng.IntN(size)] {
			kills[victim] = 1 + rng.IntN(4*size)
		}
		if err := agreeUnder(t, size, 3, seed, kills); err != nil {
			t.Fatalf("seed %d: %d processes, kills %v: %v", seed, size, kills, err)
		}
	}
}
