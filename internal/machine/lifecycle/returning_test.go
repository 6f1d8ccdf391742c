package lifecycle

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A process that was removed comes back at once. If it is removed again soon, it waits longer
// each time, and no longer than maxRejoinPause.
func TestReturningWaitsLongerEachTime(t *testing.T) {
	var r Returning
	now := protocol.Time(1)
	var pauses []protocol.Time
	for range 12 {
		r.Began(now)
		now += 1000 * millisecond
		r.Ended(now, Evicted)
		pauses = append(pauses, max(r.Deadline()-now, 0))
		now = max(now, r.Deadline())
		if _, ok := r.Next(now).(Again); !ok {
			t.Fatal("the process does not come back")
		}
		if r.Next(now) != nil {
			t.Fatal("the process joins twice")
		}
	}
	if pauses[0] != 0 || pauses[1] != firstPause || pauses[2] != 2*firstPause || pauses[11] != maxRejoinPause {
		t.Errorf("pauses %v", pauses)
	}
	r.Began(now)
	r.Ended(now+settled, Evicted)
	if d := r.Deadline(); d != now+settled {
		t.Errorf("after a long membership, it waits for %d", d-now-settled)
	}
}

// A process that has left, or that the group refuses for good, stays out. One that fails for
// now tries again.
func TestReturningStaysOut(t *testing.T) {
	for name, end := range map[string]func(*Returning){
		"left":    func(r *Returning) { r.Ended(5, Departed) },
		"refused": func(r *Returning) { r.Ended(5, Evicted); r.Next(5); r.Failed(6, true) },
	} {
		var r Returning
		r.Began(1)
		end(&r)
		if _, ok := r.Next(1e18).(End); !ok {
			t.Errorf("%s: the process does not stay out", name)
		}
	}
	var r Returning
	r.Ended(5, Evicted)
	r.Next(5)
	r.Failed(6, false)
	if r.Deadline() != 6+minReturnPause || r.Next(6) != nil {
		t.Error("a process that could not join tries again at once")
	}
	if _, ok := r.Next(r.Deadline()).(Again); !ok {
		t.Error("a process that could not join does not try again")
	}
}

// A process whose program did not receive comes back when the program does.
func TestReturningWaitsForTheProgram(t *testing.T) {
	var r Returning
	r.Began(1)
	r.Ended(2, TooSlow)
	if a := r.Next(1e18); a != nil || !r.Unread() || r.Deadline() != protocol.Never {
		t.Fatalf("it comes back before its program receives: %v", a)
	}
	r.Reading()
	if _, ok := r.Next(r.Deadline()).(Again); !ok {
		t.Error("it does not come back")
	}
}
