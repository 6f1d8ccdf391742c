package engine

import (
	"cmp"
	"slices"
	"time"
)

// A process asks others for their progress only where it needs the answer: in a call that takes
// longer than calls usually do, to learn who holds it up, and before the message log is full, to
// raise the low-water mark. Asks are paced, so that their number per process and call does not
// grow with the number of processes, and each process that was asked is asked again after twice
// the time (exponential backoff). If every process asked all others whenever a call was slow, the
// asks of many processes on few processors would make the next call slow too, and the job
// would stay in that state after its cause has gone: a metastable failure (Bronson et al. 2021).
const (
	slowCall         = 20 * time.Millisecond  // the shortest time after which a call is slow, and between two looks at it
	progressInterval = 500 * time.Millisecond // the longest time between two asks of a process
	firstAskAgain    = 100 * time.Millisecond // the shortest time between two asks of a process
	longestCall      = 10 * progressInterval  // a call that takes this long is slow, whatever calls usually take
	// asks that wait for their answers at a time, of a process whose calls are slow
	maxAsks         = 2
	maxAsksWhenFull = 32 // asks that wait for their answers at a time, of a process that waits for room in the log
)

// sweep returns a time in which a slow call has asked all processes, and each has answered.
func sweep(processes int) time.Duration {
	return 2 * slowCall * time.Duration(processes/maxAsks)
}

// asking is what a process knows of its asks of another one.
type asking struct {
	unanswered time.Duration // time of the oldest ask without an answer; 0: none
	again      time.Duration // the earliest time of the next ask
	gap        time.Duration // the time between the last ask and the next one
}

// ask notes an ask.
func (a *asking) ask(now time.Duration) {
	if a.unanswered == 0 {
		a.unanswered = now
	}
	a.gap = min(max(firstAskAgain, 2*a.gap), progressInterval)
	a.again = now + a.gap
}

// answer notes an answer. One that brings news allows the next ask soon.
func (a *asking) answer(news bool) {
	a.unanswered = 0
	if news {
		a.gap = 0
	}
}

// unansweredFor reports whether an ask has had no answer for a time.
func (a *asking) unansweredFor(now, d time.Duration) bool {
	return a.unanswered > 0 && now-a.unanswered >= d
}

// ask asks processes for their progress, of those that a function returns a positive urgency for and
// that were not asked lately. Up to limit asks wait for their answers at a time, so that asks slow down
// with the processes that answer them. It asks the most urgent first, then the one that has not
// reported for longest, then the next on the ring, so that not all processes ask the same one. It
// returns how many it has asked.
func (e *Engine) ask(now time.Duration, limit int, urgency func(rank int, s *peerStatus) int) int {
	type candidate struct {
		rank, urgency int
		status        *peerStatus
	}
	var candidates []candidate
	members := e.peers.members()
	self := slices.Index(members, e.config.Rank)
	for i := 1; i < len(members); i++ {
		r := members[(self+i)%len(members)]
		s := e.peers.of(r)
		if s.asking.unanswered > 0 && !s.asking.unansweredFor(now, progressInterval) {
			limit--
		}
		if now < s.asking.again {
			continue
		}
		if u := urgency(r, s); u > 0 {
			candidates = append(candidates, candidate{r, u, s})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.urgency, a.urgency), cmp.Compare(a.status.reportedAt, b.status.reportedAt))
	})
	asked := min(max(0, limit), len(candidates))
	for _, c := range candidates[:asked] {
		c.status.asking.ask(now)
		e.sender.askProgress(c.rank)
	}
	return asked
}

// askInSlowCall asks who has come to a call that is slow: first the processes that the call waits
// for, and if processes that are stuck are to be removed, those that have come, too.
func (e *Engine) askInSlowCall(o *callState, now time.Duration, limit int) int {
	awaited := e.waitingFor(o)
	all := e.progressTimeout(o) > 0
	return e.ask(now, limit, func(rank int, s *peerStatus) int {
		switch {
		case s.cameTo(o) && (!all || s.finishedCall(o)):
			return 0
		case s.cameTo(o):
			return 1
		case slices.Contains(awaited, rank):
			return 3
		}
		return 2
	})
}

// askForRoom asks processes that have not finished the calls at the low-water mark.
func (e *Engine) askForRoom() {
	e.ask(e.now(), maxAsksWhenFull, func(_ int, s *peerStatus) int {
		if s.finished <= e.log.lowWater {
			return 1
		}
		return 0
	})
}

// askAhead asks every other process once while the message log fills from one half to three
// quarters, some in each call, so that calls that do not raise the low-water mark seldom wait for room.
func (e *Engine) askAhead(number uint64) {
	calls := uint64(e.config.KeepCalls)
	used, span := number-min(number, e.log.lowWater), max(1, calls/4)
	if used < calls/2 || used >= calls/2+span {
		return
	}
	part, others := used-calls/2, uint64(e.config.Size-1)
	for i := part * others / span; i < (part+1)*others/span; i++ {
		e.sender.askProgress((e.config.Rank + 1 + int(i)) % e.config.Size)
	}
}
