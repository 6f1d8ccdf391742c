package engine

import (
	"cmp"
	"fmt"
	"time"
)

// A process that is alive and makes no progress holds a job up like a dead one that is never
// removed: its program sleeps, spins or is stopped. With Config.Job.ProgressTimeout, the others
// have it removed by an agreed view, and its task is taken over; an Agree or a Shrink may have a
// timeout of its own. A process is stuck if a call
// has waited that long since most of the others came to it, and
//
//   - it has not come to the call, or
//   - it does not report its progress, which a process does even while its program is busy.
//
// A process that has never had a connection may not have started yet: how long that may take is
// not decided here. Once it has one, it has all of the time to come to a call that others have
// waited for since before.
//
// A process that was late itself accuses no other (local health: Dadgar, Phillips & Currey
// 2018, Lifeguard): time counts only while it runs, and only what others have said lately
// counts.

// StuckError is why a process is to be removed.
type StuckError struct {
	Rank    int // in the world
	Call    uint64
	What    string
	Waited  time.Duration
	Arrived bool // it has come to the call, and is silent in it
}

func (e *StuckError) Error() string {
	if e.Arrived {
		return fmt.Sprintf("rank %d did not answer in %s #%d for %v", e.Rank, e.What, e.Call,
			e.Waited.Round(10*time.Millisecond))
	}
	return fmt.Sprintf("rank %d had not arrived in %s #%d for %v", e.Rank, e.What, e.Call,
		e.Waited.Round(10*time.Millisecond))
}

// fresh is the shortest time without an answer after which a process that has come to a call is silent.
const fresh = 2 * progressInterval

// progressTimeout returns how long a call waits for a process without progress; 0: without a bound.
func (e *Engine) progressTimeout(o *callState) time.Duration {
	if e.config.Evict == nil {
		return 0
	}
	return cmp.Or(o.within, e.config.ProgressTimeout)
}

// accuseStuck has processes removed that hold a slow call up.
func (e *Engine) accuseStuck(o *callState, now time.Duration) {
	timeout := e.progressTimeout(o)
	if timeout == 0 {
		return
	}
	var missing []int
	came, others := 1, 0 // came counts this process, and others those that are not known to be alive in the call
	members := e.peers.members()
	recent := max(fresh, timeout, sweep(len(members)))
	for _, r := range members {
		s := e.peers.of(r)
		silent := s.asking.unansweredFor(now, max(fresh, timeout)) && !s.finishedCall(o)
		switch {
		case r == e.config.Rank:
		case s.cameTo(o) && !silent && (s.reportedSince(now-recent) || s.finishedCall(o)):
			came++
		case silent || s.behindSince(o.local.began, now, timeout):
			if s.upFor(now, timeout) {
				missing = append(missing, r)
			}
			fallthrough
		default:
			others++
		}
	}
	if most := came > others; !most || others == 0 {
		o.waited = 0
		return
	}
	o.waited += min(now-o.ticked, 2*slowCall)
	if o.waited < timeout { // a longer tick shows that this process was late
		return
	}
	for _, r := range missing {
		e.config.Evict(e.worldRank(r), &StuckError{
			Rank: e.worldRank(r), Call: o.number, What: o.local.signature.Kind.String(), Waited: o.waited,
			Arrived: e.peers.of(r).cameTo(o),
		})
	}
	if len(missing) > 0 {
		o.waited = timeout / 2 // once more if it is in the view after that
	}
}

// accuseSlowest has processes removed for which a call waits before it begins, because they
// are as many calls behind as the log keeps.
func (e *Engine) accuseSlowest(o *callState, s Signature, since, now time.Duration) {
	timeout, waited := e.config.ProgressTimeout, now-since
	if timeout == 0 || e.config.Evict == nil || waited < timeout {
		return
	}
	members := e.peers.members()
	var behind []int
	all := 0 // with those that may have caught up and were not heard
	for _, r := range members {
		if p := e.peers.of(r); r != e.config.Rank && p.finished <= e.log.lowWater && !p.holds {
			all++
			if p.upFor(now, timeout) && p.behindSince(since, now, timeout) {
				behind = append(behind, r)
			}
		}
	}
	if 2*all >= len(members) {
		return
	}
	for _, r := range behind {
		e.config.Evict(e.worldRank(r), &StuckError{
			Rank: e.worldRank(r), Call: o.number, What: s.Kind.String(),
			Waited: waited,
		})
	}
}

// behindSince reports whether a process that seems to be behind has said so since a time, or does
// not answer. What is merely not known of a process does not count against it.
func (s *peerStatus) behindSince(since, now, timeout time.Duration) bool {
	return s.reportedSince(since) || s.asking.unansweredFor(now, timeout/2)
}

// upFor reports whether a process has had a connection for the first time that long ago.
func (s *peerStatus) upFor(now, d time.Duration) bool {
	return s.upSince > 0 && now-s.upSince >= d
}

// reportedSince reports whether a process has said since a time how far it is.
func (s *peerStatus) reportedSince(since time.Duration) bool {
	return s.reportedAt > 0 && s.reportedAt >= since
}

// finishedCall reports whether a process needs this call no more.
func (s *peerStatus) finishedCall(o *callState) bool {
	return o.agreement == nil && s.finished > o.number
}
