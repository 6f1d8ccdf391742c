package engine

import (
	"testing"

	"github.com/pleach-go/pleach/internal/collective/loggp"
)

func modelOf(tasks, hosts int) loggp.Model {
	return loggp.Model{Network: loggp.Standard(), Layout: loggp.Even(tasks, hosts)}
}

// The thresholds of small jobs are those that were measured before there was a model.
func TestThresholdsOfOneHost(t *testing.T) {
	for _, n := range []int{4, 5, 8, 16} {
		th := ThresholdsOf(modelOf(n, 1))
		if th.Halving < 8<<10 || th.Halving > 32<<10 || th.Tree < 512<<10 || th.Tree > 1<<20 || th.Chain < 512<<10 ||
			th.Chain > 1<<20 {
			t.Errorf("%d tasks: %+v", n, th)
		}
		if th.Levels != (Levels{}) {
			t.Errorf("%d tasks of one host: %+v", n, th.Levels)
		}
	}
	// A chain's first segment takes as many hops as there are tasks.
	if few, many := ThresholdsOf(modelOf(16, 1)), ThresholdsOf(modelOf(1024, 1)); many.Tree <= few.Tree ||
		many.Chain <= few.Chain {
		t.Errorf("16 tasks: %+v, 1024: %+v", few, many)
	}
}

func TestThresholdsOfHosts(t *testing.T) {
	for _, y := range [][2]int{{8, 2}, {16, 4}, {64, 8}, {65536, 1024}} {
		th := ThresholdsOf(modelOf(y[0], y[1]))
		if l := th.Levels; !l.Barrier || !l.Broadcast || l.Allreduce < 8<<10 {
			t.Errorf("%d tasks on %d hosts: %+v", y[0], y[1], th)
		}
	}
	if l := ThresholdsOf(modelOf(8, 8)).Levels; l != (Levels{}) {
		t.Errorf("one task on each host: %+v", l)
	}
	mixed := modelOf(8, 2)
	mixed.Blocks = false
	if l := ThresholdsOf(mixed).Levels; !l.Barrier || !l.Broadcast || l.Allreduce != 0 || l.Reduce != 0 {
		t.Errorf("tasks of hosts that do not follow each other: %+v", l)
	}
	near := modelOf(8, 2) // between hosts as inside: nothing to gain
	near.Between = near.Inside
	near.Inside.Latency *= 10
	if l := ThresholdsOf(near).Levels; l.Barrier || l.Allreduce != 0 {
		t.Errorf("hosts nearer than tasks of a host: %+v", l)
	}
}

func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		names  []string
		layout loggp.Layout
	}{
		{[]string{"a", "a"}, loggp.Even(2, 1)},
		{[]string{"a", "b"}, loggp.Even(2, 2)},
		{[]string{"a", "b", "b"}, loggp.Layout{Tasks: 3, Hosts: 2, PerHost: 2, Blocks: true}},
		{[]string{"a", "b", "a"}, loggp.Layout{Tasks: 3, Hosts: 2, PerHost: 2}},
		{[]string{"a", "a", "b", "b", "a"}, loggp.Layout{Tasks: 5, Hosts: 2, PerHost: 3}},
	} {
		config := Config{Size: len(c.names), Placement: NewPlacement(c.names)}
		if got := config.layout(); got != c.layout {
			t.Errorf("%v: %+v, want %+v", c.names, got, c.layout)
		}
	}
	p := NewPlacement([]string{"a", "a", "b", "b", "c"})
	if of := p.Of([]int{0, 2, 3, 4}); len(of.hosts) != 3 || of.firsts[2] != 3 {
		t.Errorf("%+v", of)
	}
	if of := p.Of([]int{2, 3}); of != nil {
		t.Errorf("one host: %+v", of)
	}
}

// A job with one process on each host pays what messages between hosts cost.
func TestThresholdsOfLoneTasks(t *testing.T) {
	c := Config{Size: 4, Placement: NewPlacement([]string{"a", "b", "c", "d"})}
	far := modelOf(4, 1)
	far.Inside = far.Between
	if got, want := c.thresholds()[everywhere], ThresholdsOf(far); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
