// Package backfill decides what an agent has missed while it was not a member, which agents
// it asks for that, and which messages are no longer available. It does no I/O (ADR 70).
//
// All members of a view receive the same broadcasts of each member in it, in the same order
// (view synchrony), so the view, the rank of the sender and a count name a broadcast at every
// agent alike. An agent that was away has a prefix of each stream of its last view, and lacks
// the rest of that view and all of the views until the one that it has come back with.
package backfill

import (
	"cmp"
	"slices"
)

// Limits of what an agent remembers of views.
const (
	maxViews   = 1024
	maxStreams = 1 << 16
	toldViews  = 64 // of the last views, in a request
)

// View names a view. Print is a hash of its members, so that views of two groups with one name
// differ.
type View struct {
	Number uint64 `json:"number"`
	Print  uint64 `json:"print"`
	// Members counts its members.
	Members int `json:"members"`
}

// Stream is the broadcasts of a member in a view, and Count counts them.
type Stream struct {
	View uint64 `json:"view"`
	Rank int    `json:"rank"`
}

// Count is how many broadcasts a stream has.
type Count struct {
	Stream
	Count uint64 `json:"count"`
}

// State is what an agent has of its group, as its files have it.
type State struct {
	Views []View  `json:"views,omitempty"`
	Have  []Count `json:"have,omitempty"`
	// Since is the first view from which on the agent knows all that was sent.
	Since uint64 `json:"since,omitempty"`
}

// Positions is what an agent has of its group. The zero value has nothing.
type Positions struct {
	views   []View                    // of one group, in order
	have    map[uint64]map[int]uint64 // by view and rank
	streams int                       // in have
	since   uint64
}

// Restore begins with a state.
func (p *Positions) Restore(s *State) {
	*p = Positions{views: s.Views, since: s.Since}
	for _, c := range s.Have {
		p.Reached(c.Stream, c.Count)
	}
}

// State returns the present state.
func (p *Positions) State() State {
	return State{Views: slices.Clone(p.views), Have: p.counts(0, ^uint64(0)), Since: p.since}
}

// counts are those of the views from one up to another, in order.
func (p *Positions) counts(from, until uint64) (counts []Count) {
	for view, ranks := range p.have {
		if view < from || view >= until {
			continue
		}
		for rank, n := range ranks {
			counts = append(counts, Count{Stream{view, rank}, n})
		}
	}
	slices.SortFunc(counts,
		func(a, b Count) int { return cmp.Or(cmp.Compare(a.View, b.View), cmp.Compare(a.Rank, b.Rank)) })
	return counts
}

// Last returns the last view, or false if there was none.
func (p *Positions) Last() (View, bool) {
	if len(p.views) == 0 {
		return View{}, false
	}
	return p.views[len(p.views)-1], true
}

// Begin begins a view. What was of a group before that has ended is forgotten.
func (p *Positions) Begin(v View) {
	if last, ok := p.Last(); ok && v.Number <= last.Number {
		*p = Positions{}
	}
	if len(p.views) == 0 {
		p.since = v.Number
	}
	p.views = append(p.views, v)
	for len(p.views) > maxViews || p.streams > maxStreams && len(p.views) > 1 {
		p.views = slices.Delete(p.views, 0, 1)
		p.since = max(p.since, p.views[0].Number)
		p.forget(p.views[0].Number)
	}
}

// forget forgets the streams of the views before one.
func (p *Positions) forget(before uint64) {
	for view, ranks := range p.have {
		if view < before {
			p.streams -= len(ranks)
			delete(p.have, view)
		}
	}
}

// Next counts a broadcast that was delivered, and returns its index.
func (p *Positions) Next(s Stream) uint64 {
	n := p.have[s.View][s.Rank] + 1
	p.Reached(s, n)
	return n
}

// Reached notes that a stream has so many broadcasts at least.
func (p *Positions) Reached(s Stream, count uint64) {
	if p.have == nil {
		p.have = make(map[uint64]map[int]uint64)
	}
	ranks := p.have[s.View]
	if ranks == nil {
		ranks = make(map[int]uint64)
		p.have[s.View] = ranks
	}
	if ranks[s.Rank] == 0 {
		p.streams++
	}
	ranks[s.Rank] = max(ranks[s.Rank], count)
}

// Filled notes what a Fill has come to, before the view until which it was.
func (p *Positions) Filled(r Result, until uint64) {
	for _, c := range r.Totals {
		p.Reached(c.Stream, c.Count)
	}
	if r.Uncertain {
		p.since = until
	}
}
