package backfill

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pleach-go/pleach/agent/retention"
)

// FleetRequest asks an agent for messages to the fleet that another one lacks.
type FleetRequest struct {
	Holes []Hole `json:"holes"`
	// Beyond says that the agent that asks does not know all that it lacks: it lacks what is
	// beyond Have, too.
	Beyond bool   `json:"beyond,omitempty"`
	Have   []Sent `json:"have,omitempty"`
	// Messages and Bytes are how much the agent that asks retains.
	Messages int `json:"max_messages"`
	Bytes    int `json:"max_bytes"`
	// After is where a page of Log continues. A zone may answer by another agent, which has
	// another log: its pages begin again at the first.
	Log   string `json:"log,omitempty"`
	After uint64 `json:"after,omitempty"`
}

// FleetReply is a page of what an agent has.
type FleetReply struct {
	Log string `json:"log"`
	// Holes are what was sent beyond Have, as this agent knows. Sure says that it knows all.
	Holes []Hole `json:"holes,omitempty"`
	Sure  bool   `json:"sure"`
	// Behind says that the agent has not received all of that yet.
	Behind bool `json:"behind"`
	// Coded are messages, as [retention.Message.Append] encodes them.
	Coded [][]byte `json:"messages"`
	Next  uint64   `json:"next"` // where the next page begins; 0: this is the last one
}

// Reply begins a reply to a request. It has no messages yet.
func (o *Origins) Reply(r *FleetRequest) *FleetReply {
	reply := &FleetReply{Sure: o.born == o.now}
	for _, h := range r.Holes {
		reply.Behind = reply.Behind || !o.Has(Sent{h.Origin, h.Last})
	}
	if !r.Beyond {
		return reply
	}
	have := make(map[Origin]uint64)
	for _, s := range r.Have {
		have[s.Origin] = s.Seq
	}
	for _, s := range o.sent() {
		if s.Seq > have[s.Origin] {
			reply.Holes = append(reply.Holes, Hole{s.Origin, have[s.Origin] + 1, s.Seq})
		}
	}
	return reply
}

// Wants returns a function that reports whether a message answers a request, as a reply to it
// begins.
func (r *FleetRequest) Wants(reply *FleetReply) func(*retention.Message) bool {
	holes := make(map[Origin][]Hole)
	for _, h := range slices.Concat(r.Holes, reply.Holes) {
		holes[h.Origin] = append(holes[h.Origin], h)
	}
	return func(m *retention.Message) bool {
		return m.Fleet && m.Incarnation > 0 &&
			slices.ContainsFunc(holes[SentOf(m).Origin], func(h Hole) bool { return m.Index >= h.First && m.Index <= h.Last })
	}
}

// Source is what is asked: an agent of the own zone by its rank, or another zone by its name.
type Source struct {
	Zone string
	Rank int
}

// FleetFill is how an agent gets messages to the fleet that it has missed: from agents of its own
// zone or, if those do not have them, from other zones. It is a machine without I/O.
type FleetFill struct {
	turns[Source]
	request FleetRequest
	limits  retention.Limits
	zones   []Source // that are asked when the agents of the own zone were
	behind  []Source // that may have more in a while
	born    uint64   // the life of the zone; 0: the fill is of some messages only
	unsure  bool     // no other zone that knows all has told yet what else was sent

	lacks map[Origin]Hole // what was missing when the fill began
	got   map[Origin]map[uint64]retention.Message
	size  int
}

// NewFleetFill begins to fill holes.
func NewFleetFill(holes []Hole, limits retention.Limits) *FleetFill {
	f := &FleetFill{limits: limits, lacks: make(map[Origin]Hole), got: make(map[Origin]map[uint64]retention.Message)}
	f.request = FleetRequest{Messages: limits.Messages, Bytes: limits.Bytes}
	for _, h := range holes {
		f.lacks[h.Origin] = h
	}
	return f
}

// AddZone adds another zone that may be asked.
func (f *FleetFill) AddZone(zone string) { f.zones = append(f.zones, Source{Zone: zone}) }

// Next returns what is done next. Agents that are behind get a moment before zones are asked.
func (f *FleetFill) Next(now time.Duration) (s Step[Source]) {
	if f.missing() == 0 && !f.request.Beyond || f.size > f.limits.Bytes {
		return s
	}
	if len(f.queue) == 0 && (len(f.behind) == 0 || now >= askAgain) {
		f.queue, f.zones = f.zones, nil
	}
	s = f.step(now, len(f.behind) > 0 && f.missing() > 0)
	if len(f.queue) == 0 && s.Wait > 0 {
		f.queue, f.behind = f.behind, nil
	}
	return s
}

// Request returns what the source is asked that has its turn.
func (f *FleetFill) Request() *FleetRequest {
	f.request.After = f.page
	if f.page == 0 {
		f.request.Holes, f.request.Log = f.holes(), ""
	}
	return &f.request
}

// holes are what is still missing.
func (f *FleetFill) holes() (holes []Hole) {
	for origin, h := range f.lacks {
		first := h.First
		for _, seq := range slices.Sorted(maps.Keys(f.got[origin])) {
			if seq > first {
				holes = append(holes, Hole{origin, first, seq - 1})
			}
			first = seq + 1
		}
		if first <= h.Last {
			holes = append(holes, Hole{origin, first, h.Last})
		}
	}
	return holes
}

// Failed says that the source has not answered: see turns. A zone may be reachable in a while.
func (f *FleetFill) Failed(now time.Duration, gone bool) (givenUp bool) {
	if source := f.queue[0]; source.Zone != "" {
		f.behind = append(f.behind, source)
		f.next()
		return false
	}
	return f.turns.Failed(now, gone)
}

// Answer takes a page of the source that was asked. Messages that were not asked for are ignored.
func (f *FleetFill) Answer(r *FleetReply) {
	f.heard()
	if f.request.Beyond {
		for _, h := range r.Holes {
			f.extend(h)
		}
	}
	for _, b := range r.Coded {
		if m, err := retention.Decode(b); err == nil {
			f.take(m, len(b))
		}
	}
	f.page, f.request.Log = r.Next, r.Log
	if r.Next > 0 {
		return
	}
	source := f.queue[0]
	f.unsure = f.unsure && (source.Zone == "" || !r.Sure)
	if r.Behind {
		f.behind = append(f.behind, source)
		f.next()
		return
	}
	f.Pass()
}

// extend notes that an agent knows of messages beyond what this one has.
func (f *FleetFill) extend(h Hole) {
	if known, ok := f.lacks[h.Origin]; ok {
		h.First, h.Last = known.First, max(known.Last, h.Last)
	}
	f.lacks[h.Origin] = h
}

func (f *FleetFill) take(m retention.Message, size int) {
	at := SentOf(&m)
	h, lacks := f.lacks[at.Origin]
	if !lacks || m.Index < h.First || m.Index > h.Last || f.got[at.Origin][m.Index].Index > 0 || !m.Fleet || m.Gap != "" {
		return
	}
	if f.got[at.Origin] == nil {
		f.got[at.Origin] = make(map[uint64]retention.Message)
	}
	f.got[at.Origin][m.Index] = m
	f.size += size
}

// missing counts the messages that no source had which was asked.
func (f *FleetFill) missing() (n uint64) {
	for origin, h := range f.lacks {
		n += h.Last - h.First + 1 - uint64(len(f.got[origin]))
	}
	return n
}

// FleetResult is what a FleetFill has come to.
type FleetResult struct {
	// Messages are those that were missed, in the order of their origins.
	Messages []retention.Message
	// Ends are up to where the messages of the origins go then.
	Ends []Sent
	// Missing counts the messages that nobody had any more. Uncertain says that there may be
	// others: no other zone that knows all has answered.
	Missing   uint64
	Uncertain bool
	// Born is the life of the zone of which the agent knows all origins then; 0: as before.
	Born uint64
}

// Result returns what was got.
func (f *FleetFill) Result() FleetResult {
	r := FleetResult{Missing: f.missing(), Uncertain: f.unsure, Born: f.born}
	var streams [][]retention.Message
	for origin, h := range f.lacks {
		r.Ends = append(r.Ends, Sent{origin, h.Last})
		if got := f.got[origin]; len(got) > 0 {
			streams = append(streams, inOrder(got))
		}
	}
	r.Messages = merge(streams, func(a, b *retention.Message) int {
		return cmp.Or(a.Time.Compare(b.Time), compareOrigins(SentOf(a).Origin, SentOf(b).Origin))
	})
	return r
}
