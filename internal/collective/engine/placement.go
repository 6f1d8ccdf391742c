package engine

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/pleach-go/pleach/internal/collective/loggp"
)

// Placement says which tasks share a host. It is that of the start, the same on all
// processes for the life of the job: a task that is taken over keeps its place among the
// tasks of its host, so that algorithms, and what they send, do not depend on failures.
type Placement struct {
	host   []int   // by task: the index of its host
	hosts  [][]int // the tasks of each host, in order; hosts in the order of their first tasks
	firsts []int   // the first task of each host
	blocks bool    // the tasks of each host follow each other
	digest uint64
}

// NewPlacement returns the placement of tasks whose hosts have these names, or nil if there
// is one host.
func NewPlacement(names []string) *Placement {
	p := &Placement{host: make([]int, len(names)), blocks: true}
	index := make(map[string]int)
	for task, name := range names {
		h, known := index[name]
		if !known {
			h = len(p.hosts)
			index[name] = h
			p.hosts, p.firsts = append(p.hosts, nil), append(p.firsts, task)
		}
		p.blocks = p.blocks && h >= len(p.hosts)-1
		p.host[task], p.hosts[h] = h, append(p.hosts[h], task)
	}
	if len(p.hosts) < 2 {
		return nil
	}
	h := fnv.New64a()
	fmt.Fprint(h, p.host)
	p.digest = h.Sum64()
	return p
}

// Blocks reports whether the tasks of each host follow each other.
func (p *Placement) Blocks() bool { return p.blocks }

// Of returns the placement of some of the tasks, numbered from 0 in the given order.
func (p *Placement) Of(tasks []int) *Placement {
	if p == nil {
		return nil
	}
	names := make([]string, len(tasks))
	for i, task := range tasks {
		names[i] = fmt.Sprint(p.host[task])
	}
	return NewPlacement(names)
}

// layout is what a model needs to know.
func (c *Config) layout() loggp.Layout {
	p := c.Placement
	if p == nil {
		return loggp.Even(c.Size, 1)
	}
	y := loggp.Layout{Tasks: c.Size, Hosts: len(p.hosts), Blocks: p.blocks}
	for _, tasks := range p.hosts {
		y.PerHost = max(y.PerHost, len(tasks))
	}
	return y
}

// level is a set of tasks that has thresholds of its own.
type level uint8

const (
	everywhere level = iota
	inHost
	betweenHosts
	levels
)

// thresholds returns the thresholds of each level.
func (c *Config) thresholds() (t [levels]Thresholds) {
	m := loggp.Model{Network: c.Network.WithDefaults(), Layout: c.layout()}
	if c.Thresholds != (Thresholds{}) {
		for i := range t {
			t[i] = c.Thresholds
			t[i].Levels = Levels{}
		}
		t[everywhere].Levels = c.Thresholds.Levels.of(m.Layout)
		return t
	}
	t[everywhere] = ThresholdsOf(m)
	if m.TwoLevels() {
		t[inHost], t[betweenHosts] = ThresholdsOf(m.Host()), ThresholdsOf(m.Leaders())
	}
	return t
}

// selection identifies what the thresholds come from. It is part of every signature:
// processes that would use different algorithms get a mismatch instead of waiting for
// messages that are never sent.
func (c *Config) selection() uint64 {
	if c.Placement == nil && c.Network == (loggp.Network{}) {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, c.Network)
	if c.Placement == nil {
		return h.Sum64()
	}
	return h.Sum64() ^ c.Placement.digest
}

// Teams are the two sets of tasks in which a task takes part in a two-level algorithm. No
// two tasks are together in more than one of them, so the messages of both have different
// envelopes.
type Teams struct {
	// Host has the tasks of the task's host, and Leader is the index of the one that leads.
	Host   *Task
	Leader int
	// Leaders has those that lead, by host, and Root is the index of the root's host. It is
	// nil if the task does not lead.
	Leaders *Task
	Root    int
}

// Teams returns the task's teams. The root leads its host, if there is a root, and the first
// task leads each other host.
func (t *Task) Teams(root int) Teams {
	p := t.engine.config.Placement
	host := p.host[t.ID]
	leaders, at := p.firsts, -1
	if root != NoRoot {
		at = p.host[root]
		if leaders[at] != root {
			leaders = slices.Clone(leaders)
			leaders[at] = root
		}
	}
	tasks := p.hosts[host]
	index, _ := slices.BinarySearch(tasks, t.ID)
	leader, _ := slices.BinarySearch(tasks, leaders[host])
	teams := Teams{Host: t.within(inHost, tasks, index), Leader: leader, Root: at}
	if index == leader {
		teams.Leaders = t.within(betweenHosts, leaders, host)
	}
	return teams
}

// within returns the task as one of a team.
func (t *Task) within(l level, team []int, index int) *Task {
	w := *t
	w.ID, w.N, w.team, w.level = index, len(team), team, l
	return &w
}

// number returns the task of an index in the team.
func (t *Task) number(index int) int {
	if t.team == nil {
		return index
	}
	return t.team[index]
}
