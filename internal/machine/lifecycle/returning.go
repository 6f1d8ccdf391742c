package lifecycle

import "github.com/pleach-go/pleach/protocol"

// The pause after a failed attempt to join again doubles with each further one.
const minReturnPause, maxReturnPause = 100 * millisecond, 30_000 * millisecond

// Ending is how a membership has ended.
type Ending uint8

// The endings.
const (
	// Departed is the end of a process that has left, was replaced, or has failed.
	Departed Ending = iota
	// Evicted is the end of a process that the others have removed.
	Evicted
	// TooSlow is the end of a process that has left because its program received nothing.
	TooSlow
)

// The actions of a [Returning].
type (
	// Again makes the process join again. The driver reports by [Returning.Began] or
	// [Returning.Failed].
	Again struct{}
	// End leaves the process out for good.
	End struct{}
)

func (Again) action() {}
func (End) action()   {}

// Returning decides whether a process whose membership has ended joins again, and when. In:
// Began, Ended, Failed and Reading. Out, after each of these and at Deadline: Next. The zero
// value is for a process that is not a member yet. A Returning does no I/O, and is not safe
// for concurrent use.
type Returning struct {
	began   protocol.Time // start of the present membership
	backoff Backoff
	pause   protocol.Time // after the last attempt, which has failed
	due     protocol.Time // of the next attempt; 0: none
	unread  bool          // the program has yet to receive what is left
	over    bool
}

// Began says that the process is a member.
func (r *Returning) Began(now protocol.Time) { r.began, r.due = now, 0 }

// Ended says that the process is a member no longer.
func (r *Returning) Ended(now protocol.Time, e Ending) {
	r.unread, r.over, r.pause = e == TooSlow, e == Departed, 0
	r.due = max(now+r.backoff.Removed(now-r.began), 1)
}

// Failed says that an attempt has failed, for good or not.
func (r *Returning) Failed(now protocol.Time, permanent bool) {
	r.over = permanent
	r.pause = min(max(2*r.pause, minReturnPause), maxReturnPause)
	r.due = now + r.pause
}

// Reading says that the program has received all that was left of the last membership. One
// that was too slow comes back then, and not before: it would hold the others up again.
func (r *Returning) Reading() { r.unread = false }

// Unread reports whether the process waits for its program.
func (r *Returning) Unread() bool { return r.unread }

// Next returns the next action, or nil if there is none for now.
func (r *Returning) Next(now protocol.Time) Action {
	switch {
	case r.over:
		return End{}
	case r.due == 0 || r.due > now || r.unread:
		return nil
	}
	r.due = 0
	return Again{}
}

// Deadline returns when Next must be called again if nothing else happens.
func (r *Returning) Deadline() protocol.Time {
	if r.due == 0 || r.unread {
		return protocol.Never
	}
	return r.due
}
