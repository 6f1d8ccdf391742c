package collective

import "slices"

// reassign gives the tasks of those who are gone to survivors: each, in order, to
// whom it leaves with the fewest tasks, and of several to the next one after the
// task on the ring. The thesis asks for a choice "in a fair way to avoid that one
// process is handling all the failed tasks" (Stengler 2017, §3.1.1). Everybody
// installs the same views in the same order, so everybody gives alike; a task
// moves only if its owner is gone, because to move it means to do it again.
func reassign(owners, live []int) {
	loads := make(map[int]int, len(live))
	for _, r := range live {
		loads[r] = 0
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

// ownedBy returns a rank's tasks.
func (e *Engine) ownedBy(rank int) (tasks []int) {
	if e.owners == nil {
		return []int{rank}
	}
	for task, r := range e.owners {
		if r == rank {
			tasks = append(tasks, task)
		}
	}
	return tasks
}
