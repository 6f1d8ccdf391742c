package engine

import (
	"cmp"
	"fmt"
	"time"
)

// A process that is alive and does not get on holds a job up like a dead one that nobody
// removes: its program sleeps, spins or is stopped. With Config.Job.ProgressTimeout, the others
// have it removed by an agreed view, and its task is taken over; an Agree or a Shrink may have a
// timeout of its own. A process is stuck if a call
// has waited that long since most of the others came to it, and
//
//   - it has not come to the call, or
//   - it does not say how far it is, which a process does also while its program is busy.
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
		return fmt.Sprintf("rank %d did not answer in %s #%d for %v", e.Rank, e.What, e.Call, e.Waited.Round(10*time.Millisecond))
	}
	return fmt.Sprintf("rank %d had not arrived in %s #%d for %v", e.Rank, e.What, e.Call, e.Waited.Round(10*time.Millisecond))
}

// fresh is how old a progress report may be that counts. Progress is requested twice as often.
const fresh = 2 * progressInterval

// accuseStuck has processes removed that hold a slow call up.
func (e *Engine) accuseStuck(o *callState, now time.Duration) {
	timeout := cmp.Or(o.within, e.config.ProgressTimeout)
	if timeout == 0 || e.config.Evict == nil {
		return
	}
	var missing []int
	came := 1 // this process
	for _, r := range e.peers.members() {
		s := e.peers.of(r)
		switch {
		case r == e.config.Rank:
		case s.cameTo(o) && (e.recently(s, now, timeout) || s.finishedCall(o)):
			came++
		default:
			missing = append(missing, r)
		}
	}
	if most := came > len(missing); !most || len(missing) == 0 {
		o.waited = 0
		return
	}
	if o.waited += min(now-o.ticked, 2*slowCall); o.waited < timeout { // a longer tick shows that this process was late
		return
	}
	for _, r := range missing {
		e.config.Evict(e.worldRank(r), &StuckError{
			Rank: e.worldRank(r), Call: o.number, What: o.local.signature.Kind.String(), Waited: o.waited, Arrived: e.peers.of(r).cameTo(o),
		})
	}
	o.waited = timeout / 2 // once more if it is in the view after that
}

// accuseSlowest has processes removed for which a call waits before it begins, because they
// are as many calls behind as the log keeps.
func (e *Engine) accuseSlowest(o *callState, s Signature, waited time.Duration) {
	if e.config.ProgressTimeout == 0 || e.config.Evict == nil || waited < e.config.ProgressTimeout {
		return
	}
	members := e.peers.members()
	var behind []int
	for _, r := range members {
		if p := e.peers.of(r); r != e.config.Rank && p.finished <= e.log.lowWater && !p.holds {
			behind = append(behind, r)
		}
	}
	if 2*len(behind) >= len(members) {
		return
	}
	for _, r := range behind {
		e.config.Evict(e.worldRank(r), &StuckError{Rank: e.worldRank(r), Call: o.number, What: s.Kind.String(), Waited: waited})
	}
}

// recently reports whether a process has said lately how far it is.
func (e *Engine) recently(s *peerStatus, now, timeout time.Duration) bool {
	return s.reportedAt > 0 && now-s.reportedAt < max(fresh, timeout)
}

// finishedCall reports whether a process needs this call no more.
func (s *peerStatus) finishedCall(o *callState) bool {
	return o.agreement == nil && s.finished > o.number
}
