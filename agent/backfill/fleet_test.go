package backfill

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/agent/retention"
)

// zoned is an agent of a simulated fleet: what its subscribers have, and what they were told.
type zoned struct {
	zone, id  string
	start     uint64
	alive     bool
	log       *retention.Log
	limits    retention.Limits
	origins   Origins
	waiting   []retention.Message // delivered to it, in order, or lost with it
	heard     map[Origin][]uint64
	first     map[Origin]uint64 // message from which on it has to have or to be told all
	missing   uint64
	uncertain bool
}

// simFleet is a simulated fleet of two zones with two agents each.
type simFleet struct {
	agents []*zoned
	sent   map[Origin]uint64
	lives  uint64            // of agents
	born   map[string]uint64 // the last lives of the zones
}

func newFleet(t *rapid.T) *simFleet {
	f := &simFleet{sent: make(map[Origin]uint64), born: make(map[string]uint64)}
	for i := range 4 {
		limits := retention.Limits{Messages: rapid.SampledFrom([]int{3, 1000}).Draw(t, "retained"), Bytes: 1 << 20}
		f.agents = append(f.agents, &zoned{
			zone: fmt.Sprint(i / 2), id: fmt.Sprint("agent", i), limits: limits, log: retention.New(fmt.Sprint(i), limits),
			heard: make(map[Origin][]uint64), first: make(map[Origin]uint64),
		})
	}
	return f
}

func (f *simFleet) alive(zone string) (list []*zoned) {
	for _, a := range f.agents {
		if a.alive && a.zone == zone {
			list = append(list, a)
		}
	}
	return list
}

func (a *zoned) origin() Origin { return Origin{a.zone, a.id, a.start} }

// send sends to the fleet. The sender has its own message at once.
func (f *simFleet) send(t *rapid.T, from *zoned) {
	o := from.origin()
	f.sent[o]++
	m := retention.Message{
		From: -1, Fleet: true, Zone: o.Zone, FromID: o.ID, Incarnation: o.Incarnation, Index: f.sent[o],
		Time: time.Unix(int64(f.sent[o]), 0),
	}
	for _, a := range f.agents {
		if a.alive {
			a.waiting = append(a.waiting, m)
			if a == from {
				f.flush(t, a, len(a.waiting))
			}
		}
	}
}

// flush has an agent take in what was delivered to it, up to a number.
func (f *simFleet) flush(t *rapid.T, a *zoned, most int) {
	for range min(most, len(a.waiting)) {
		m := a.waiting[0]
		a.waiting = a.waiting[1:]
		at := SentOf(&m)
		if a.origins.Has(at) {
			continue
		}
		if h := a.origins.Before(at, 0); h.First <= h.Last {
			f.fill(t, a, NewFleetFill([]Hole{h}, a.limits))
		}
		a.origins.Reached(at)
		a.take(m)
	}
}

func (a *zoned) take(m retention.Message) {
	o := SentOf(&m).Origin
	a.heard[o] = append(a.heard[o], m.Index)
	a.log.Add(m)
}

// comeBack has an agent enter the fleet, at the positions of its zone or, if that is dead, at
// those of the other zone, which it meets later: it does not know them yet.
func (f *simFleet) comeBack(t *rapid.T, a *zoned) {
	var before []Sent
	f.lives++
	a.alive, a.waiting, a.start = true, nil, f.lives
	new := a.origins.Fleet() == ""
	if len(f.alive(a.zone)) > 1 {
		for o, n := range f.sent {
			before = append(before, Sent{o, n})
			if _, known := a.first[o]; !known && new {
				a.first[o] = n + 1
			}
		}
	} else {
		f.born[a.zone] = f.lives
		if new {
			for o, n := range f.sent { // as a base tells it
				a.first[o] = n + 1
			}
		}
	}
	if fill := a.origins.Enter("fleet", f.born[a.zone], before, a.limits); fill != nil {
		f.fill(t, a, fill)
	}
}

// fill drives a fill.
func (f *simFleet) fill(t *rapid.T, a *zoned, fill *FleetFill) {
	other := map[string]string{"0": "1", "1": "0"}[a.zone]
	if len(f.alive(other)) > 0 {
		fill.AddZone(other)
	}
	for i, b := range f.agents {
		if b != a && b.alive && b.zone == a.zone {
			fill.Add(Source{Rank: i})
		}
	}
	now, failed := time.Duration(0), false
	var asked []*zoned
	for s := fill.Next(now); s != (Step[Source]{}); s = fill.Next(now) {
		switch {
		case !s.Ask:
			now += s.Wait
			for _, b := range f.agents { // what an agent is behind with comes
				if b != a && b.alive {
					f.flush(t, b, len(b.waiting))
				}
			}
		case rapid.IntRange(0, 9).Draw(t, "fails") == 0:
			failed = true
			if fill.Failed(now, rapid.Bool().Draw(t, "gone")) {
				a.uncertain = true // what only that one has is not had
			}
		case s.Agent.Zone != "":
			there := f.alive(other)
			by := there[rapid.IntRange(0, len(there)-1).Draw(t, "answers")]
			asked = append(slices.DeleteFunc(asked, func(b *zoned) bool { return b.zone == other }), by) // which begins anew
			f.answer(t, by, fill)
		default:
			asked = append(asked, f.agents[s.Agent.Rank])
			f.answer(t, f.agents[s.Agent.Rank], fill)
		}
	}
	r := fill.Result()
	a.missing, a.uncertain = a.missing+r.Missing, a.uncertain || r.Uncertain
	for _, m := range r.Messages {
		a.take(m)
	}
	a.origins.Filled(r)
	if !failed && !fill.request.Beyond && a.limits.Messages > len(r.Messages) {
		// else one that was asked may have got more since
		for _, zone := range []string{a.zone, other} {
			if r.Missing > 0 && len(f.alive(zone)) > 0 &&
				!slices.ContainsFunc(asked, func(b *zoned) bool { return b.zone == zone }) &&
				!slices.Equal(f.alive(zone), []*zoned{a}) {
				t.Fatalf("%s lacks messages, and has asked nobody in zone %s", a.id, zone)
			}
		}
		checkGot(t, fill, asked)
	}
}

// checkGot checks that an agent has got all that those retain which it has asked.
func checkGot(t *rapid.T, fill *FleetFill, asked []*zoned) {
	for _, h := range fill.holes() {
		for _, b := range asked {
			b.log.Select(1, retention.Limits{}, func(*retention.Message) bool { return true }, func(m *retention.Message) bool {
				if at := SentOf(m); at.Origin == h.Origin && at.Seq >= h.First && at.Seq <= h.Last {
					t.Fatalf("%s has message %v, which was not got from it", b.id, at)
				}
				return true
			})
		}
	}
}

// answer has an agent answer a request, two messages in a page. What it knows beyond that is what
// was sent, but for what is on its way.
func (f *simFleet) answer(t *rapid.T, a *zoned, fill *FleetFill) {
	r := fill.Request()
	if r.Beyond {
		f.flush(t, a, len(a.waiting))
	}
	reply := a.origins.Reply(r)
	reply.Log = a.log.Epoch()
	if r.Log != reply.Log {
		r.After = 0
	}
	reply.Next = a.log.Select(r.After, retention.Limits{Messages: r.Messages, Bytes: r.Bytes}, r.Wants(reply),
		func(m *retention.Message) bool {
			reply.Coded = append(reply.Coded, m.Append(nil))
			return len(reply.Coded) < 2
		})
	fill.Answer(reply)
}

// Agents of a fleet die and come back, alone and whole zones of them, under load. What the
// subscribers of each have is every message since its first start, each once and in the order of
// its origin, but for those that are counted, or for a notice that it is not known what is missing.
func TestNothingOfAFleetIsMissedSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		for _, a := range f.agents {
			f.comeBack(t, a)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			a := f.agents[rapid.IntRange(0, len(f.agents)-1).Draw(t, "agent")]
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
			case !a.alive && step < 5:
				f.comeBack(t, a)
			case !a.alive:
			case step == 0: // with a part of what is on its way
				f.flush(t, a, rapid.IntRange(0, len(a.waiting)).Draw(t, "delivered"))
				a.alive, a.waiting = false, nil
			case step == 1:
				f.flush(t, a, 1)
			default:
				f.send(t, a)
			}
		}
		for _, a := range f.agents {
			if !a.alive {
				f.comeBack(t, a)
			}
		}
		for _, a := range f.agents { // so that no origin is silent
			f.send(t, a)
		}
		for _, a := range f.agents {
			f.flush(t, a, len(a.waiting))
		}
		for _, a := range f.agents {
			f.check(t, a)
		}
	})
}

// check compares what the subscribers of an agent have with what was sent. What a dead origin has
// sent as the last of its zone's agents may be known to none.
func (f *simFleet) check(t *rapid.T, a *zoned) {
	var lacks uint64
	for o := range f.sent {
		heard := a.heard[o]
		if !slices.IsSorted(heard) || len(slices.Compact(slices.Clone(heard))) < len(heard) {
			t.Fatalf("%s has %v of %v", a.id, heard, o)
		}
		known := uint64(0)
		for _, other := range f.agents {
			if h := other.heard[o]; len(h) > 0 {
				known = max(known, h[len(h)-1])
			}
		}
		if first := max(a.first[o], 1); known >= first {
			lacks += known - first + 1 - uint64(len(heard))
		}
	}
	if lacks != a.missing && !a.uncertain {
		t.Fatalf("%s lacks %d messages, and was told of %d", a.id, lacks, a.missing)
	}
}

// What an agent remembers of a fleet outlives it, and is bounded.
func TestOriginsAreBounded(t *testing.T) {
	var o Origins
	o.Enter("fleet", 1, nil, retention.Limits{})
	for i := range 2 * maxOrigins {
		o.Reached(Sent{Origin{"z", fmt.Sprint(i), 1}, 7})
	}
	last := Sent{Origin{"z", "1", 1}, 7}
	o.Enter("fleet", 1, []Sent{last}, retention.Limits{})
	s := o.State()
	if len(s.Have) != 1 || s.Have[0] != last {
		t.Errorf("%d origins", len(s.Have))
	}
	var p Origins
	p.Restore(&s)
	if !p.Has(last) || p.Fleet() != "fleet" {
		t.Errorf("restored: %+v", p)
	}
	if p.Enter("other", 1, nil, retention.Limits{}) != nil || p.Has(last) {
		t.Error("another fleet is taken for the one before")
	}
}
