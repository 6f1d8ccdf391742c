package collective

import "math/bits"

// fold reduces any number of tasks to a power of two: the first 2·extra tasks form pairs,
// in which the even task acts for both. Neighbors stay neighbors, so the order of combining
// stays the same.
type fold struct {
	power int // the largest power of two up to the number of tasks
	extra int // pairs
}

func foldOf(n int) fold {
	power := 1 << (bits.Len(uint(n)) - 1)
	return fold{power, n - power}
}

// absent returns the partner that acts for a task, if there is one.
func (f fold) absent(id int) (partner int, ok bool) {
	return id - 1, id < 2*f.extra && id%2 == 1
}

// partner returns the task that a task acts for, if there is one.
func (f fold) partner(id int) (partner int, ok bool) {
	return id + 1, id < 2*f.extra && id%2 == 0
}

// index returns a task's index among those that are left. Method task is its inverse.
func (f fold) index(id int) int {
	if id < 2*f.extra {
		return id / 2
	}
	return id - f.extra
}

func (f fold) task(index int) int {
	if index < f.extra {
		return 2 * index
	}
	return index + f.extra
}
