package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// On a slow network no attempt is over within its first timeout. Timeouts follow the
// answers, so that a view without a dead member comes after a few round trips, and no live
// member is left out.
func TestSlowNetwork(t *testing.T) {
	bothWays(t, func(t *testing.T, way func(*Config)) {
		for _, latency := range []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second} {
			for _, size := range []int{3, 5, 9, 20} {
				t.Run(fmt.Sprintf("latency=%v/members=%d", latency, size), func(t *testing.T) {
					n := newNetwork(t, size, 1, way)
					n.latency, n.jitter = latency, latency/10
					n.kill(2)
					n.suspectAll(2)
					wantRanks(t, n.settleWithin(40*latency), without(size, 2))
					if b := n.hosts[0].m.Stats().Ballots; b > 8 {
						t.Errorf("%d attempts", b)
					}
				})
			}
		}
	})
}

// Answers that have waited because this member was stopped, or the network was partitioned,
// do not make it wait for as long from then on.
func TestOneLateAnswerTeachesLittle(t *testing.T) {
	const surprise = 2 * second
	var p pace
	p.learn(600*second, surprise)
	if p.answer != surprise {
		t.Errorf("after one answer that took 10 minutes, %d s are expected", p.answer/second)
	}
	for range 10 {
		p.learn(3*surprise, surprise)
	}
	if p.answer != 3*surprise {
		t.Errorf("answers take %d s, and %d s are expected", 3*surprise/second, p.answer/second)
	}
	p.learn(millisecond, surprise)
	if p.answer != 3*surprise/2 {
		t.Errorf("after one quick answer, %d s are expected", p.answer/second)
	}
}

// A coordinator whose own timers are late has more patience with another member before it
// leaves it out.
func TestLateTimersStretchPatience(t *testing.T) {
	v := firstView(5)
	m, err := New(Config{Self: *v.Members.At(0), View: v, Log: newTestLog(*v.Members.At(0), v)})
	if err != nil {
		t.Fatal(err)
	}
	before := m.patience()
	now := protocol.Time(1)
	for range 2 * maxDoubt {
		now = m.Deadline() + second
		for _, _, ok := m.Next(now); ok; _, _, ok = m.Next(now) {
		}
	}
	if late := m.patience(); late != (1+maxDoubt)*before {
		t.Errorf("late timers: patience %d, before %d", late, before)
	}
	for range 2 * maxDoubt {
		now = m.Deadline()
		for _, _, ok := m.Next(now); ok; _, _, ok = m.Next(now) {
		}
	}
	if after := m.patience(); after != before {
		t.Errorf("timers on time: patience %d, before %d", after, before)
	}
}

// A member learns from the first answer to its reports how slow the network is, and has as much
// more patience with its coordinator. A coordinator that was stopped teaches it a part of that.
func TestAnswersToReportsTeachPatience(t *testing.T) {
	for took, want := range map[protocol.Time]protocol.Time{
		second: patienceFactor * second, 4 * second: patienceFactor * 5 * second / 2, 10 * millisecond: 5 * second,
	} {
		a := newAsker(t, func(c *Config) { c.Self, c.DoubtTimeout, c.ProbeTimeout = *c.View.Members.At(4), 0, 60*second })
		a.Suspect(a.now, 3, 1)
		a.step(a.now)
		status := frame{kind: Status, view: 1, incarnation: 1}
		for range 2 { // the second one answers nothing
			a.step(a.now + took)
			if err := a.Receive(a.now, 0, status.append(nil)); err != nil {
				t.Fatal(err)
			}
			if got := a.patience(); got != want {
				t.Errorf("an answer after %d ms: a patience of %d ms, want %d", took/millisecond, got/millisecond, want/millisecond)
			}
		}
	}
}

// What was slow may be fast again: with every view a part of what is known is forgotten.
func TestPaceIsForgotten(t *testing.T) {
	a := newAsker(t, nil)
	a.pace.answer = 8 * second
	a.receive(t, 1, frame{kind: Commit, root: 1, value: &value{
		number: 2, version: a.view.Version, slots: 5,
		removed: newSet(5),
	}})
	if a.view.Number != 2 || a.pace.answer != 6*second {
		t.Errorf("in view %d, answers are expected after %d s", a.view.Number, a.pace.answer/second)
	}
}

// What members ask for counts for longer where answers take longer.
func TestLeaseFollowsThePace(t *testing.T) {
	a := newAsker(t, nil)
	before := a.lease()
	a.pace.answer = second
	if a.lease() != before+patienceFactor*second {
		t.Errorf("%d ms, before %d", a.lease()/millisecond, before/millisecond)
	}
}
