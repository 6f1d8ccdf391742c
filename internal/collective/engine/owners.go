package engine

import "slices"

// reassign gives the tasks of failed processes to survivors: each task, in order, to
// the survivor with the fewest tasks, and among several to the next one after the task
// on the ring. Stengler (2017, §3.1.1) asks for a choice "in a fair way to avoid that
// one process is handling all the failed tasks". Every process installs the same views
// in the same order, so every process computes the same owners. A task moves only if its
// owner has failed, because the new owner runs it from the beginning.
//
// A newcomer gets none as long as another survivor is there: it may not have the state yet
// by which inputs are restored.
func reassign(owners, live, newcomers []int) {
	loads := make(map[int]int, len(live))
	for _, r := range live {
		loads[r] = 0
	}
	for _, r := range newcomers {
		if _, ok := loads[r]; ok {
			loads[r] += len(owners) + 1
		}
	}
	var orphans []int
	for task, r := range owners {
		if _, ok := loads[r]; ok {
			loads[r]++
		} else {
			orphans = append(orphans, task)
		}
	}
	for _, task := range orphans {
		first, _ := slices.BinarySearch(live, task)
		best := live[first%len(live)]
		for i := range live {
			if r := live[(first+i)%len(live)]; loads[r] < loads[best] {
				best = r
			}
		}
		owners[task] = best
		loads[best]++
	}
}

// owner returns the rank that owns a task.
func (p *peers) owner(task int) int {
	if p.owners == nil {
		return task
	}
	return p.owners[task]
}

// ownedBy returns the tasks that a rank owns.
func (p *peers) ownedBy(rank int) (tasks []int) {
	if p.owners == nil {
		return []int{rank}
	}
	for task, r := range p.owners {
		if r == rank {
			tasks = append(tasks, task)
		}
	}
	return tasks
}
