package backfill

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pleach-go/pleach/agent/retention"
)

// Request asks an agent for what another one has missed: broadcasts of the views From up to
// Until beyond what it has.
type Request struct {
	Views []View  `json:"views"` // the last ones of the agent that asks
	From  uint64  `json:"from"`  // its last view before
	Until uint64  `json:"until"` // its first view after
	Have  []Count `json:"have"`
	// Messages and Bytes are how much the agent that asks retains.
	Messages int `json:"max_messages"`
	Bytes    int `json:"max_bytes"`
	// After is where a page continues, or 0 for the first one.
	After uint64 `json:"after"`
}

// Reply is a page of what an agent has.
type Reply struct {
	// Known says that the agent was a member together with the one that asks, of the same
	// group. Otherwise there are no messages. Held says that it was so in the last view of the
	// one that asks.
	Known bool `json:"known"`
	Held  bool `json:"held"`
	// Since is the first view from which on the agent knows all that was sent, until now or,
	// if it is Filling itself, until it was away.
	Since   uint64  `json:"since"`
	Filling bool    `json:"filling"`
	Counts  []Count `json:"counts"`
	// Coded are messages, as [retention.Message.Append] encodes them.
	Coded [][]byte `json:"messages"`
	Next  uint64   `json:"next"` // where the next page begins; 0: this is the last one
}

// Reply begins a reply to a request. It has no messages yet.
func (p *Positions) Reply(r *Request) *Reply {
	if !slices.ContainsFunc(r.Views, func(v View) bool { return p.holds(v) }) {
		return &Reply{Since: p.since}
	}
	return &Reply{Known: true, Held: p.holds(r.Views[len(r.Views)-1]), Since: p.since, Counts: p.counts(r.From, r.Until)}
}

// holds reports whether a view was this agent's, too.
func (p *Positions) holds(v View) bool {
	i, found := slices.BinarySearchFunc(p.views, v.Number, func(w View, n uint64) int { return cmp.Compare(w.Number, n) })
	return found && p.views[i].Print == v.Print
}

// Wants returns a function that reports whether a message answers the request.
func (r *Request) Wants() func(*retention.Message) bool {
	have := make(map[Stream]uint64)
	for _, c := range r.Have {
		have[c.Stream] = c.Count
	}
	return func(m *retention.Message) bool {
		return !m.Fleet && m.Index > have[Stream{m.View, m.From}] && m.View >= r.From && m.View < r.Until
	}
}

// Fill is how an agent gets what it has missed: it asks one agent after the other, until one
// was a member all the time and nothing is missing. It is a machine without I/O.
type Fill struct {
	turns[int] // by rank
	request    Request
	limits     retention.Limits
	complete   bool // one knows all that was sent
	newcomer   bool // one was a member before this agent came back, and not together with it
	// others is how many other members the last view of this agent had, and held how many
	// of them have answered that know all until they were away.
	others, held int

	had   map[Stream]uint64
	total map[Stream]uint64
	got   map[Stream]map[uint64]retention.Message
	size  int
}

// NewFill begins to fill what is missing before a view. It returns nil if there was no view
// before, so that nothing is missing.
func NewFill(p *Positions, until uint64, limits retention.Limits) *Fill {
	last, ok := p.Last()
	if !ok {
		return nil
	}
	f := &Fill{
		limits: limits, had: make(map[Stream]uint64), total: make(map[Stream]uint64),
		got: make(map[Stream]map[uint64]retention.Message),
	}
	for _, c := range p.counts(last.Number, until) {
		f.had[c.Stream] = c.Count
	}
	f.others = last.Members - 1
	f.request = Request{
		Views: p.views[max(0, len(p.views)-toldViews):], From: last.Number, Until: until,
		Messages: limits.Messages, Bytes: limits.Bytes,
	}
	return f
}

// Next returns what is done next.
func (f *Fill) Next(now time.Duration) (s Step[int]) {
	begunAnew := f.request.Until <= f.request.From // the group
	if begunAnew || f.complete && f.missing() == 0 || f.size > f.limits.Bytes {
		return s
	}
	return f.step(now, f.lacks())
}

// lacks reports whether an agent that was a member together with this one, and is not back yet,
// may have what no other has.
func (f *Fill) lacks() bool { return !f.complete && f.answered < min(f.others, maxAsked) }

// Request returns what the agent is asked that has its turn.
func (f *Fill) Request() *Request {
	f.request.After = f.page
	if f.page == 0 {
		f.request.Have = f.prefixes()
	}
	return &f.request
}

// prefixes are what this agent has of each stream without a hole.
func (f *Fill) prefixes() (have []Count) {
	streams := maps.Clone(f.had)
	for s, got := range f.got {
		for got[streams[s]+1].Index > 0 {
			streams[s]++
		}
	}
	for s, n := range streams {
		have = append(have, Count{s, n})
	}
	return have
}

// Answer takes a page of the agent that was asked. Messages that were not asked for are
// ignored.
func (f *Fill) Answer(r *Reply) {
	f.heard()
	if !r.Known {
		f.newcomer = f.newcomer || r.Since < f.request.Until
		f.Pass()
		return
	}
	for _, c := range r.Counts {
		if c.View >= f.request.From && c.View < f.request.Until {
			f.total[c.Stream] = max(f.total[c.Stream], c.Count)
		}
	}
	for _, b := range r.Coded {
		if m, err := retention.Decode(b); err == nil {
			f.take(m, len(b))
		}
	}
	f.page = r.Next
	if r.Next == 0 {
		if r.Since <= f.request.From {
			f.complete = f.complete || !r.Filling
			if r.Held {
				f.held++
			}
		}
		f.Pass()
	}
}

func (f *Fill) take(m retention.Message, size int) {
	s := Stream{m.View, m.From}
	if m.Index <= f.had[s] || m.Index > f.total[s] || f.got[s][m.Index].Index > 0 || m.Gap != "" {
		return
	}
	if f.got[s] == nil {
		f.got[s] = make(map[uint64]retention.Message)
	}
	f.got[s][m.Index] = m
	f.size += size
}

// missing counts the broadcasts that no agent had which was asked.
func (f *Fill) missing() (n uint64) {
	for s, total := range f.total {
		if had := f.had[s] + uint64(len(f.got[s])); total > had {
			n += total - had
		}
	}
	return n
}

// Result is what a Fill has come to.
type Result struct {
	// Messages are those that were missed, in the order of their streams, and by view.
	Messages []retention.Message
	// Totals are the streams as other agents know them.
	Totals []Count
	// Missing counts the messages that nobody had any more. Uncertain says that there may be
	// others: no agent that was asked knows all.
	Missing   uint64
	Uncertain bool
}

// Result returns what was got. If no agent knows all, since all were away, what all members of
// the last view have together is everything. Of a view that this agent was alone in it has everything
// itself, unless others have become members before it was back.
func (f *Fill) Result() Result {
	r := Result{Missing: f.missing()}
	r.Uncertain = !f.complete && (f.held < f.others || f.newcomer || len(f.failed) > 0)
	for s, n := range f.total {
		r.Totals = append(r.Totals, Count{s, n})
	}
	r.Messages = f.merge()
	return r
}

// merge puts the messages into one order: by view, and in it by the time at which they came to
// the agents that had them, as far as the order of the streams allows. Their clocks may differ.
func (f *Fill) merge() (messages []retention.Message) {
	var streams [][]retention.Message
	for _, got := range f.got {
		streams = append(streams, inOrder(got))
	}
	return merge(streams, func(a, b *retention.Message) int {
		return cmp.Or(cmp.Compare(a.View, b.View), a.Time.Compare(b.Time), cmp.Compare(a.From, b.From))
	})
}

// inOrder returns the messages of a stream in its order.
func inOrder(got map[uint64]retention.Message) []retention.Message {
	return slices.SortedFunc(maps.Values(got), func(a, b retention.Message) int { return cmp.Compare(a.Index, b.Index) })
}

// merge puts the messages of streams that are in order into one order.
func merge(streams [][]retention.Message, compare func(a, b *retention.Message) int) (messages []retention.Message) {
	for len(streams) > 0 {
		least := 0
		for i := range streams {
			if compare(&streams[i][0], &streams[least][0]) < 0 {
				least = i
			}
		}
		messages = append(messages, streams[least][0])
		streams[least] = streams[least][1:]
		if len(streams[least]) == 0 {
			streams = slices.Delete(streams, least, least+1)
		}
	}
	return messages
}
