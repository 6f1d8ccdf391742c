package collective

import (
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// correction is the shape of a corrected call (Küttler and Härtig, Fault-tolerant Reduce and
// Allreduce operations based on correction, 2026). Virtual ranks count from the root, which
// has 0. The other tasks form groups of f+1; the members of a group are in different
// subtrees of the root. Within a group every task sends its input to every other. So each
// subtree has all inputs, and one without a dead process brings them to the root. The tasks
// that are left over form a last group with the root itself.
//
// Messages: f(f+1)·⌊(n−1)/(f+1)⌋ + a(a−1) within groups, where a is the size of the last one,
// root included; and n−1 along the tree.
type correction struct {
	task *engine.Task
	root int
	f    int
	// vrank is this task's; group and subtree are what it belongs to. The last
	// group has the number groups.
	vrank, group, subtree, groups int
}

func correctionOf(t *engine.Task, root, f int) *correction {
	c := &correction{task: t, root: root, f: f, groups: (t.N - 1) / (f + 1)}
	c.vrank = (t.ID - root + t.N) % t.N
	c.group, c.subtree = c.groups, 0
	if c.vrank > 0 {
		c.group, c.subtree = (c.vrank-1)/(f+1), (c.vrank-1)%(f+1)
	}
	return c
}

// id returns the task of a virtual rank.
func (c *correction) id(vrank int) int { return (vrank + c.root) % c.task.N }

// peers returns the members of the task's group, itself included, in order.
func (c *correction) peers() (vranks []int) {
	if c.group == c.groups {
		vranks = append(vranks, 0)
	}
	for p := c.group*(c.f+1) + 1; p < min((c.group+1)*(c.f+1)+1, c.task.N); p++ {
		vranks = append(vranks, p)
	}
	return vranks
}

// at returns the member of a group in a subtree.
func (c *correction) at(group, subtree int) int { return group*(c.f+1) + 1 + subtree }

// parent returns the task that gets this one's values. Groups form a binomial tree in each
// subtree; the last group's members are leaves, whose inputs the root has already.
func (c *correction) parent() int {
	switch {
	case c.group == 0 || c.groups == 0:
		return 0
	case c.group == c.groups:
		return c.at(0, c.subtree)
	}
	return c.at(c.group&(c.group-1), c.subtree)
}

// below returns the tasks whose totals this one combines, in order.
func (c *correction) below() (vranks []int) {
	if c.vrank == 0 {
		for s := range min(c.f+1, c.task.N-1) {
			vranks = append(vranks, c.at(0, s))
		}
		return vranks
	}
	for bit := 1; c.group&bit == 0 && c.group+bit < c.groups; bit *= 2 {
		vranks = append(vranks, c.at(c.group+bit, c.subtree))
	}
	return vranks
}

// children returns the tasks that get the result from this one, in order: those below, and
// a member of the last group, whose input the root has.
func (c *correction) children() []int {
	vranks := c.below()
	if leaf := c.at(c.groups, c.subtree); c.vrank > 0 && c.group == 0 && c.groups > 0 && leaf < c.task.N {
		vranks = append(vranks, leaf)
	}
	return vranks
}

// await returns the messages of tasks in a step, which are to be waited for.
func (c *correction) await(vranks []int, step int) []engine.Awaited {
	messages := make([]engine.Awaited, len(vranks))
	for i, v := range vranks {
		messages[i] = engine.Awaited{From: c.id(v), Step: step}
	}
	return messages
}

// others returns the members of the task's group without itself.
func (c *correction) others() []int {
	return slices.DeleteFunc(c.peers(), func(p int) bool { return p == c.vrank })
}

// patience is how long a task waits where a wrong guess would fail the call. As long as no
// more than f processes are dead or silent, what it waits for comes.
func (c *correction) patience() time.Duration { return time.Duration(c.f+1) * 2 * time.Second }
