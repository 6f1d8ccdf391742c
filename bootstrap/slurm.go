package bootstrap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// slurm is srun. It provides the names of the nodes and their numbers of tasks. The
// location of every rank follows from that.
type slurm struct{}

func (slurm) name() string        { return "Slurm" }
func (slurm) variables() []string { return []string{"SLURM_PROCID"} }

func (slurm) detect(env environment) (Assignment, bool, error) {
	if env("SLURM_PROCID") == "" {
		return Assignment{}, false, nil
	}
	a, err := env.assignment(names{rank: "SLURM_PROCID", size: "SLURM_NTASKS", local: "SLURM_LOCALID"})
	if err != nil {
		return Assignment{}, false, err
	}
	if job := env("SLURM_JOB_ID"); job != "" {
		a.group("slurm", strings.TrimSuffix(job+"."+env("SLURM_STEP_ID"), "."))
	}
	if a.Addresses != nil || a.Rendezvous != "" {
		return a, true, nil
	}
	if env("SLURM_STEP_NODELIST") == "" { // a batch script, or a process that it starts
		a.hint = "start the program with srun"
		return a, true, nil
	}
	a, err = deriveInSlurm(env, a)
	return a, err == nil, err
}

// location is the node of a task and its number among the tasks of that node.
type location struct{ node, local int }

func deriveInSlurm(env environment, a Assignment) (Assignment, error) {
	nodes, err := expandNodes(env("SLURM_STEP_NODELIST"))
	if err != nil {
		return Assignment{}, &VariableError{
			Name: "SLURM_STEP_NODELIST", Value: env("SLURM_STEP_NODELIST"),
			Problem: err.Error(),
		}
	}
	tasks, err := slurmTasks(env, int(a.Size), len(nodes))
	if err != nil {
		return Assignment{}, err
	}
	kind, _, _ := strings.Cut(env("SLURM_DISTRIBUTION"), ":")
	if kind == "plane" || kind == "arbitrary" {
		a.hint = "start the program with srun --distribution=block or cyclic"
		return a, nil
	}
	locations := distribute(tasks, kind == "cyclic")
	// Slurm's configuration can change the default distribution. Each process checks
	// its own location, so that a wrong list does not go unnoticed.
	if own := locations[a.Rank]; own.local != a.LocalRank ||
		env("SLURM_NODEID") != "" && env("SLURM_NODEID") != strconv.Itoa(own.node) {
		return Assignment{}, &VariableError{
			Name: "SLURM_DISTRIBUTION", Value: env("SLURM_DISTRIBUTION"),
			Problem: fmt.Sprintf(
				"tasks are not distributed as expected: rank %d should be task %d of node %d, but SLURM_LOCALID=%s and SLURM_NODEID=%s; start the program with srun --distribution=block, or set PLEACH_ADDRESSES",
				a.Rank, own.local, own.node, env("SLURM_LOCALID"), env("SLURM_NODEID")),
		}
	}
	port, err := env.port(slices.Max(tasks) - 1)
	if err != nil {
		return Assignment{}, err
	}
	a.Addresses = make([]string, len(locations))
	for rank, at := range locations {
		a.Addresses[rank] = address(nodes[at.node], port+at.local)
	}
	return a, nil
}

// distribute returns the location of each rank: filling node after node (block), or
// round robin (cyclic).
func distribute(tasks []int, cyclic bool) []location {
	var locations []location
	if cyclic {
		for local := range slices.Max(tasks) {
			for node, n := range tasks {
				if local < n {
					locations = append(locations, location{node, local})
				}
			}
		}
		return locations
	}
	for node, n := range tasks {
		for local := range n {
			locations = append(locations, location{node, local})
		}
	}
	return locations
}

// slurmTasks returns the number of tasks on each node, which add up to size.
// Slurm writes 2(x3),1 for 2, 2, 2 and 1.
func slurmTasks(env environment, size, nodes int) ([]int, error) {
	const name = "SLURM_STEP_TASKS_PER_NODE"
	value := env(name)
	if value == "" {
		if size%nodes != 0 {
			return nil, &VariableError{Name: name, Problem: fmt.Sprintf("it must be set: %d tasks do not fit evenly on %d nodes",
				size, nodes)}
		}
		return slices.Repeat([]int{size / nodes}, nodes), nil
	}
	var tasks []int
	sum := 0
	for part := range strings.SplitSeq(value, ",") {
		n, times, ok := parseTasks(part)
		if !ok || times > nodes-len(tasks) || n > size {
			return nil, &VariableError{
				Name: name, Value: value,
				Problem: fmt.Sprintf("it must be written as in 2(x3),1, for %d nodes and %d tasks", nodes, size),
			}
		}
		tasks = append(tasks, slices.Repeat([]int{n}, times)...)
		sum += n * times
	}
	if sum != size || len(tasks) != nodes {
		return nil, &VariableError{
			Name: name, Value: value,
			Problem: fmt.Sprintf("%d tasks on %d nodes, but SLURM_NTASKS=%d and SLURM_STEP_NODELIST has %d nodes", sum,
				len(tasks), size, nodes),
		}
	}
	return tasks, nil
}

// parseTasks reads 2 or 2(x3).
func parseTasks(part string) (n, times int, ok bool) {
	count, repeat, repeated := strings.Cut(part, "(x")
	times = 1
	if repeated {
		number, closed := strings.CutSuffix(repeat, ")")
		var err error
		times, err = strconv.Atoi(number)
		if err != nil || !closed {
			return 0, 0, false
		}
	}
	n, err := strconv.Atoi(count)
	return n, times, err == nil && n >= 1 && times >= 1
}
