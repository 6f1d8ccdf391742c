package backfill

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/agent/retention"
)

// agent is an agent of a simulated group: what its subscribers have, and what they were told.
type agent struct {
	alive     bool
	log       *retention.Log
	limits    retention.Limits
	positions Positions
	waiting   []retention.Message // delivered to it when the view ends, or lost with it

	heard     map[Stream][]uint64
	missing   uint64
	uncertain bool
	first     uint64 // its first view
}

// group is a simulated group. Ranks are those of the agents.
type group struct {
	agents []*agent
	view   uint64
	sent   map[Stream]uint64
	now    int64
	last   map[int]bool // the members of the last view: without one of them there is no next
}

func newGroup(t *rapid.T) *group {
	g := &group{sent: make(map[Stream]uint64)}
	for range rapid.IntRange(2, 4).Draw(t, "agents") {
		limits := retention.Limits{Messages: rapid.SampledFrom([]int{3, 1000}).Draw(t, "retained"), Bytes: 1 << 20}
		g.agents = append(g.agents, &agent{log: retention.New("e", limits), limits: limits, heard: make(map[Stream][]uint64)})
	}
	return g
}

func (a *agent) take(m retention.Message) {
	a.heard[Stream{m.View, m.From}] = append(a.heard[Stream{m.View, m.From}], m.Index)
	a.log.Add(m)
}

// flush has an agent receive what is on its way to it, up to a number.
func (a *agent) flush(most int) {
	n := min(most, len(a.waiting))
	for _, m := range a.waiting[:n] {
		m.Index = a.positions.Next(Stream{m.View, m.From})
		a.take(m)
	}
	a.waiting = a.waiting[n:]
}

// send broadcasts from an agent, which has its own message at once.
func (g *group) send(from int) {
	g.now++
	m := retention.Message{From: from, View: g.view, Time: time.Unix(g.now, 0), Data: []byte("x")}
	g.sent[Stream{g.view, from}]++
	for i, a := range g.agents {
		if a.alive {
			a.waiting = append(a.waiting, m)
			if i == from {
				a.flush(len(a.waiting))
			}
		}
	}
}

// change installs a view: the survivors of the one before have all its messages.
func (g *group) change() {
	g.view++
	members := make(map[int]bool)
	for i, a := range g.agents {
		if a.alive {
			members[i] = true
			a.flush(len(a.waiting))
		}
	}
	for i := range members {
		g.agents[i].positions.Begin(View{Number: g.view, Print: g.view * 7, Members: len(members)})
	}
	if len(members) > 0 {
		g.last = members
	}
}

// comeBack makes an agent a member again: it fills what it has missed.
func (g *group) comeBack(t *rapid.T, i int) {
	a := g.agents[i]
	var candidates []int
	for j, other := range g.agents {
		if other.alive {
			candidates = append(candidates, j)
		}
	}
	if len(candidates) == 0 && len(g.last) > 0 && !g.last[i] {
		return
	}
	until := g.view + 1
	for _, other := range g.agents {
		if other.alive {
			other.flush(len(other.waiting))
		}
	}
	if fill := NewFill(&a.positions, until, a.limits); fill != nil {
		for _, rank := range candidates {
			fill.Add(rank)
		}
		now := time.Duration(0)
		for s := fill.Next(now); s != (Step[int]{}); s = fill.Next(now) {
			switch {
			case !s.Ask:
				now += s.Wait
			case rapid.IntRange(0, 9).Draw(t, "fails") == 0:
				fill.Failed(now, rapid.Bool().Draw(t, "gone"))
			default:
				fill.Answer(g.agents[s.Agent].answer(fill.Request()))
			}
		}
		r := fill.Result()
		a.missing, a.uncertain = a.missing+r.Missing, a.uncertain || r.Uncertain
		for _, m := range r.Messages {
			a.take(m)
		}
		a.positions.Filled(r, until)
	}
	if a.first == 0 {
		a.first = until
	}
	a.alive, a.waiting = true, nil
	g.change()
}

// answer answers a request, two messages in a page.
func (a *agent) answer(r *Request) *Reply {
	reply := a.positions.Reply(r)
	if reply.Known {
		reply.Next = a.log.Select(r.After, retention.Limits{Messages: r.Messages, Bytes: r.Bytes}, r.Wants(),
			func(m *retention.Message) bool {
				reply.Coded = append(reply.Coded, m.Append(nil))
				return len(reply.Coded) < 2
			})
	}
	return reply
}

// Agents of a group die and come back, alone and all of them, under load. What the subscribers
// of each have is everything since its first view, each message once and in the order of its
// sender, but for those that are counted, or for a notice that it is not known what is missing.
func TestNothingIsMissedSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		for i := range g.agents {
			g.comeBack(t, i)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(g.agents)-1).Draw(t, "agent")
			a := g.agents[i]
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
			case !a.alive && step < 5:
				g.comeBack(t, i)
			case !a.alive:
			case step == 9 && rapid.Bool().Draw(t, "all"): // at once
				for _, a := range g.agents {
					a.flush(rapid.IntRange(0, len(a.waiting)).Draw(t, "delivered"))
					a.alive, a.waiting = false, nil
				}
			case step == 0: // with a part of what is on its way
				a.flush(rapid.IntRange(0, len(a.waiting)).Draw(t, "delivered"))
				a.alive, a.waiting = false, nil
				g.change()
			case step == 1:
				a.flush(1)
			default:
				g.send(i)
			}
		}
		for i := range 2 * len(g.agents) { // twice: some cannot be the first
			if a := g.agents[i%len(g.agents)]; !a.alive {
				g.comeBack(t, i%len(g.agents))
			}
		}
		g.change()
		for i := range g.agents {
			g.check(t, i)
		}
	})
}

// check compares what the subscribers of an agent have with what any agent has.
func (g *group) check(t *rapid.T, i int) {
	a := g.agents[i]
	var lacks uint64
	for s := range g.sent {
		heard := a.heard[s]
		if !slices.IsSorted(heard) || len(slices.Compact(slices.Clone(heard))) < len(heard) {
			t.Fatalf("agent %d has %v of %v", i, heard, s)
		}
		known := uint64(0)
		for _, other := range g.agents {
			if h := other.heard[s]; len(h) > 0 {
				known = max(known, h[len(h)-1])
			}
		}
		if s.View >= a.first {
			lacks += known - uint64(len(heard))
		}
	}
	if lacks != a.missing && !a.uncertain {
		t.Fatalf("agent %d lacks %d messages, and was told of %d", i, lacks, a.missing)
	}
}

// An agent of another group with the same name knows nothing of this one, whatever the numbers
// of its views.
func TestOtherGroup(t *testing.T) {
	var here, there Positions
	for n := uint64(1); n < 5; n++ {
		here.Begin(View{Number: n, Print: 1, Members: 2})
		there.Begin(View{Number: n, Print: 2, Members: 2})
		there.Next(Stream{n, 0})
	}
	fill := NewFill(&here, 9, retention.Limits{Messages: 10, Bytes: 1000})
	fill.Add(0)
	if !fill.Next(0).Ask {
		t.Fatal("nobody is asked")
	}
	fill.Answer(there.Reply(fill.Request()))
	if r := fill.Result(); len(r.Messages) > 0 || !r.Uncertain {
		t.Errorf("got %+v", r)
	}
	fill = NewFill(&here, 2, retention.Limits{})
	fill.Add(0)
	if s := fill.Next(0); s.Ask || s.Wait > 0 || !fill.Result().Uncertain {
		t.Error("a group that has begun anew is taken for the one before")
	}
}

// What an agent remembers of views is bounded.
func TestPositionsAreBounded(t *testing.T) {
	var p Positions
	for n := uint64(1); n <= 3*maxViews; n++ {
		p.Begin(View{Number: n})
		for rank := range 100 {
			p.Next(Stream{n, rank})
		}
	}
	s := p.State()
	if len(s.Views) > maxViews || len(s.Have) > maxStreams+100 || s.Since != s.Views[0].Number {
		t.Errorf("%d views since %d, %d streams", len(s.Views), s.Since, len(s.Have))
	}
	var q Positions
	q.Restore(&s)
	if a, b := fmt.Sprint(q.State()), fmt.Sprint(s); a != b {
		t.Errorf("restored: %.100s, want %.100s", a, b)
	}
}
