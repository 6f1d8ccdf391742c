package launch

import (
	"io"
	"testing"
	"time"
)

// killable is a process that only tells whether it was killed.
type killable struct {
	worker
	killed bool
}

func (k *killable) Kill() { k.killed = true }

// Processes report on pipes of their own, so the launcher may read that rank 1 is no longer in the view
// before it reads that rank 1 has left. It is not killed for it, also when all others have ended.
func TestProcessThatLeavesIsNotKilledAsRemoved(t *testing.T) {
	workers := []*killable{{}, {}}
	r := &running{
		Job:        Job{Size: 2, Grace: time.Hour, Output: &Output{Stderr: Stream{Writer: io.Discard}, start: time.Now()}},
		processes:  []*rankProcess{{worker: workers[0], ended: true}, {worker: workers[1], rank: 1}},
		membership: newMembership(2),
	}
	r.handleReport(report{rank: 0, line: "removed 1 2"})
	r.endStopped()
	r.killRemoved()
	r.handleReport(report{rank: 1, line: "left"})
	if workers[1].killed || r.membership.expired == nil {
		t.Error("it has no time to tell that it has left")
	}
	r.Grace = 0
	r.killRemoved()
	if workers[1].killed {
		t.Error("it has left, and is killed")
	}
	r.handleReport(report{rank: 1, line: "back 1 3"})
	r.membership.left[1] = false
	r.handleReport(report{rank: 0, line: "removed 1 4"})
	r.killRemoved()
	if !workers[1].killed {
		t.Error("it was removed, and is not killed after the grace time")
	}
}
