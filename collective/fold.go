package collective

import "math/bits"

// fold makes any number of tasks a power of two: the first 2·extra go in pairs,
// in which the even one stands for both. Neighbors stay neighbors, so the order
// of combining is kept.
type fold struct {
	power int // the largest power of two within the number of tasks
	extra int // pairs
}

func foldOf(n int) fold {
	power := 1 << (bits.Len(uint(n)) - 1)
	return fold{power, n - power}
}

// absent reports whether a partner stands for a task, and which.
func (f fold) absent(id int) (partner int, ok bool) {
	return id - 1, id < 2*f.extra && id%2 == 1
}

// partner is whom a task stands for.
func (f fold) partner(id int) (partner int, ok bool) {
	return id + 1, id < 2*f.extra && id%2 == 0
}

// index is a task's place among those that are left; task is the reverse.
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
