package collective

import (
	"strconv"
	"time"
)

// Progress is what a process is doing in a world, as [Place.Progress] tells it and
// pleach ps shows it. Ranks are those of the world that pleach.NewWorld has made,
// also in worlds made by [Shrink]; tasks are the world's own.
type Progress struct {
	// World names a world made by Shrink. The first has no name.
	World string `json:"world,omitempty"`
	Rank  int    `json:"rank"`
	Size  int    `json:"size"` // of the world
	View  uint64 `json:"view"`
	// Calls and Agreements (Agree and Shrink) are how many it has begun.
	Calls      uint64 `json:"calls"`
	Agreements uint64 `json:"agreements"`
	Tasks      []int  `json:"tasks"`
	Failed     []int  `json:"failed,omitempty"`
	Revoked    bool   `json:"revoked,omitempty"`
	// Doing are the calls that it is in, the earliest first, and Last is the one
	// that was over last.
	Current []CallStatus `json:"doing,omitempty"`
	Last    *CallStatus  `json:"last,omitempty"`
}

// Doing is a call that is under way, or over.
type CallStatus struct {
	Call uint64 `json:"call"`
	// Agreement says which Agree or Shrink it is, counted from 1.
	Agreement uint64  `json:"agreement,omitempty"`
	Name      string  `json:"name"`
	What      string  `json:"what"`
	Seconds   float64 `json:"seconds"` // since it began, or was over
	// WaitsFor are the ranks whose messages it needs now.
	WaitsFor []int  `json:"waits_for,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Limits of what is told: whoever asks has a life, too.
const (
	maxTold       = 64 // calls under way, ranks, tasks
	maxToldWorlds = 16
	maxToldError  = 400
)

// Progress tells what this process is doing, in this world and in those that were
// made of it. It tells of at most 64 calls, ranks and tasks each, and of the 16
// latest worlds.
func (p Comm) Progress() []Progress {
	all := p.engine.progress(time.Now())
	if extra := len(all) - maxToldWorlds; extra > 0 {
		all = all[extra:]
	}
	return all
}

func (e *Engine) progress(now time.Time) []Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := Progress{
		Rank: e.worldRank(e.config.Rank), Size: e.config.Size, View: e.view,
		Calls: e.next, Agreements: e.begun, Revoked: e.revokedBy >= 0,
		Tasks: capped(e.ownedBy(e.config.Rank)), Failed: e.toWorldRanks(e.failedRanks()),
	}
	if e.contextID != 0 {
		p.World = strconv.FormatUint(e.contextID, 36)
	}
	for n := e.returned; n < e.next && len(p.Current) < maxTold; n++ {
		if o := e.calls[n]; o != nil && o.local != nil && !o.finished {
			d := callStatusOf(o.number, agreementOf(o), o.local.signature, now.Sub(o.local.began))
			d.WaitsFor = e.toWorldRanks(e.waitingFor(o))
			p.Current = append(p.Current, d)
		}
	}
	if o := &e.lastDone; o.signature.kind != 0 {
		d := callStatusOf(o.number, o.agreement, o.signature, now.Sub(o.at))
		if o.err != nil {
			d.Error = o.err.Error()[:min(maxToldError, len(o.err.Error()))]
		}
		p.Last = &d
	}
	all := []Progress{p}
	for _, w := range e.nested {
		all = append(all, w.progress(now)...)
	}
	return all
}

// over is a call that has returned.
type finishedCall struct {
	number, agreement uint64
	signature         signature
	at                time.Time
	err               error
}

func callStatusOf(number, agreement uint64, s signature, since time.Duration) CallStatus {
	return CallStatus{Call: number, Agreement: agreement, Name: s.kind.String(), What: s.String(), Seconds: since.Seconds()}
}

// agreementOf counts from 1; 0: it is none.
func agreementOf(o *callState) uint64 {
	if o.agreement == nil {
		return 0
	}
	return o.agreement.number + 1
}

// first turns ranks into those of the first world.
func (e *Engine) toWorldRanks(ranks []int) (first []int) {
	for _, r := range capped(ranks) {
		first = append(first, e.worldRank(r))
	}
	return first
}

func capped(list []int) []int { return list[:min(maxTold, len(list))] }
