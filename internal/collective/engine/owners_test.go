package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// After any failures in any order, every task has a live owner, no process owns two tasks
// more than another, and only the tasks of failed processes have moved.
func TestTasksAreSpreadFairly(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := 1 + rng.IntN(40)
		owners, live := make([]int, size), make([]int, size)
		for i := range size {
			owners[i], live[i] = i, i
		}
		for len(live) > 1 {
			for range 1 + rng.IntN(min(3, len(live)-1)) {
				i := rng.IntN(len(live))
				live = slices.Delete(live, i, i+1)
			}
			before := slices.Clone(owners)
			reassign(owners, live, nil)
			loads := make(map[int]int)
			for task, r := range owners {
				loads[r]++
				if !slices.Contains(live, r) || r != before[task] && slices.Contains(live, before[task]) {
					t.Fatalf("seed %d: task %d went from %d to %d; alive are %v", seed, task, before[task], r, live)
				}
			}
			least, most := size, 0
			for _, r := range live {
				least, most = min(least, loads[r]), max(most, loads[r])
			}
			if most > least+1 {
				t.Fatalf("seed %d: one rank has %d tasks, another %d: %v", seed, most, least, owners)
			}
		}
	}
}

// A newcomer takes over a task only if no other process is left: without the state it could
// not restore the task's input.
func TestNewcomersTakeOverLast(t *testing.T) {
	owners := []int{0, 1, 2, 3}
	reassign(owners, []int{0, 2, 3}, []int{2})
	if want := []int{0, 3, 2, 3}; !slices.Equal(owners, want) {
		t.Errorf("got %v, want %v", owners, want)
	}
	reassign(owners, []int{2, 3}, []int{2})
	if want := []int{3, 3, 2, 3}; !slices.Equal(owners, want) {
		t.Errorf("got %v, want %v", owners, want)
	}
	reassign(owners, []int{2}, []int{2})
	if want := []int{2, 2, 2, 2}; !slices.Equal(owners, want) {
		t.Errorf("got %v, want %v", owners, want)
	}
}
