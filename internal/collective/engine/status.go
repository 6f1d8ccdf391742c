package engine

import (
	"strconv"
	"time"
)

// Progress is what a process does in a communicator. Package collective documents its
// fields.
type Progress struct {
	World      string
	Rank       int
	Size       int
	View       uint64
	Calls      uint64
	Agreements uint64
	Tasks      []int
	Failed     []int
	Revoked    bool
	Current    []CallStatus
	Last       *CallStatus
}

// CallStatus is a call in progress, or one that has returned.
type CallStatus struct {
	Call      uint64
	Agreement uint64
	Name      string
	What      string
	Seconds   float64
	WaitsFor  []int
	Error     string
}

// Limits of a report: it travels in one answer.
const (
	maxReported      = 64 // calls, ranks, tasks
	maxReportedComms = 16
	maxReportedError = 400 // bytes
)

func (e *Engine) progress() []Progress {
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stampCalls(now)
	c := &e.calls
	p := Progress{
		Rank: e.worldRank(e.config.Rank), Size: e.config.Size, View: e.peers.view,
		Calls: c.next, Agreements: e.agreements.begun, Revoked: e.revokedBy >= 0,
		Tasks: capped(e.peers.ownedBy(e.config.Rank)), Failed: e.toWorldRanks(e.peers.failed()),
	}
	if e.comms.worldRanks != nil {
		p.World = strconv.FormatUint(e.comms.contextID, 36)
	}
	for n := c.returned; n < c.next && len(p.Current) < maxReported; n++ {
		if o := c.byNumber[n]; o != nil && o.local != nil && !o.returned {
			s := callStatus(o.number, o.agreementNumber(), o.local.signature, now-o.local.began)
			s.WaitsFor = e.toWorldRanks(e.waitingFor(o))
			p.Current = append(p.Current, s)
		}
	}
	if d := &c.lastDone; d.signature.Kind != 0 {
		s := callStatus(d.number, d.agreement, d.signature, now-d.at)
		if d.err != nil {
			s.Error = d.err.Error()[:min(maxReportedError, len(d.err.Error()))]
		}
		p.Last = &s
	}
	var all []Progress
	if e.generation.next == nil { // which has taken its place
		all = append(all, p)
	}
	for _, n := range e.comms.nested {
		all = append(all, n.progress()...)
	}
	return all
}

func callStatus(number, agreement uint64, s Signature, since time.Duration) CallStatus {
	return CallStatus{
		Call: number, Agreement: agreement, Name: s.Kind.String(), What: s.String(),
		Seconds: since.Seconds(),
	}
}

func (e *Engine) toWorldRanks(ranks []int) (world []int) {
	for _, r := range capped(ranks) {
		world = append(world, e.worldRank(r))
	}
	return world
}

func capped(list []int) []int { return list[:min(maxReported, len(list))] }
