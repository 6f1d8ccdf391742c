package main

import "github.com/pleach-go/pleach/lab/figures"

// bindingsBench needs the command and the library, and Debian's numpy, mpi4py and torch.
const bindingsBench = "/usr/bin/python3 bindings/python/bench.py --json "

// bindingsCalls compares Allreduce from other languages with Go, mpi4py and Gloo.
func bindingsCalls(l *lab) []figures.Table {
	l.output("make --silent build bindings")
	var out map[string]map[string]float64
	l.measure(&out, bindingsBench+"allreduce")
	t := figures.Table{Name: "calls", Columns: []string{
		"Allreduce", "8 B, one process", "8 B, 4 processes",
		"4 MiB, 4 processes",
	}}
	for _, name := range []string{"Go", "C", "Python", "mpi4py over TCP", "mpi4py over shared memory", "Gloo"} {
		t.Rows = append(t.Rows, []string{
			name, micros(out[name]["8 B alone"]), micros(out[name]["8 B"]),
			micros(out[name]["4 MiB"]),
		})
	}
	return []figures.Table{t}
}

// bindingsTraining measures the delay of a training by a death, compared with Gloo.
func bindingsTraining(l *lab) []figures.Table {
	var out map[string]float64
	l.measure(&out, bindingsBench+"training")
	t := figures.Table{Name: "training", Columns: []string{"a process of 4 is killed in step 150 of 300", "time"}}
	for _, name := range []string{
		"Pleach: the longest step", "Gloo: until the error",
		"Gloo: until the first step of a new job",
	} {
		t.Rows = append(t.Rows, []string{name, millis(out[name])})
	}
	return []figures.Table{t}
}
