package heartbeat

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/protocol"
)

// crowd is a member with neighbors 1, 2 and 3, which have the same incarnation.
type crowd struct {
	*Machine
	now    protocol.Time
	silent map[protocol.Rank]bool
}

func newCrowd(timeout protocol.Time, started bool) *crowd {
	c := &crowd{now: 1, silent: map[protocol.Rank]bool{}}
	c.Machine = New(Config{
		Interval: interval, Timeout: timeout,
		Report: func(r protocol.Rank, silent bool) { c.silent[r] = silent },
	})
	c.watch(started, 1, 2, 3)
	return c
}

func (c *crowd) watch(started bool, ranks ...protocol.Rank) {
	var list []Neighbor
	for _, r := range ranks {
		list = append(list, Neighbor{Rank: r, Incarnation: 7, Started: started})
	}
	c.Watch(c.now, list)
}

// run has time pass, in which these neighbors send heartbeats and the member runs so late.
func (c *crowd) run(duration, late protocol.Time, beating ...protocol.Rank) {
	for end := c.now + duration; c.now < end; {
		c.now = max(c.now, c.Deadline()+late)
		for _, r := range beating {
			c.Heard(c.now, r)
			c.Beat(r)
		}
		c.Beat(9) // of a process that is no neighbor
		for ok := true; ok; {
			_, ok = c.Next(c.now)
		}
	}
}

// A neighbor's signs of life are its own, whatever the others do and whichever of them come
// and go.
func TestNeighborsAreJudgedOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.Permutation([]protocol.Rank{1, 2, 3}).Draw(t, "order")
		beating := rapid.IntRange(0, 3).Draw(t, "beating")
		c := newCrowd(timeout, true)
		c.watch(true, ranks...)
		c.run(20*interval, 0, 1, 2, 3)
		c.TakeHealth()
		c.run(20*interval, 0, ranks[:beating]...)
		for i, r := range ranks {
			if c.silent[r] != (i >= beating) {
				t.Fatalf("of %v, %d send: rank %d is silent: %v", ranks, beating, r, c.silent[r])
			}
		}
		if h := c.TakeHealth(); (h.Beats >= 20) != (beating > 0) || h.Beats > 0 && beating == 0 {
			t.Fatalf("%d heartbeats of %d neighbors in %d intervals", h.Beats, beating, h.Intervals)
		}
		// One that was not there yet has not been silent.
		c.watch(true, append(ranks, 4)...)
		c.run(interval, 0)
		if c.silent[4] {
			t.Fatal("a new neighbor is as silent as the others")
		}
	})
}

// Without a timeout, and before a neighbor has started, silence is none.
func TestSilenceThatIsNone(t *testing.T) {
	for name, c := range map[string]*crowd{"no timeout": newCrowd(0, true), "not started": newCrowd(timeout, false)} {
		for range 100 {
			c.run(interval, 0)
			if c.Quiet() || len(c.silent) > 0 {
				t.Fatalf("%s: at %d ms quiet: %v, silent: %v", name, c.now/ms, c.Quiet(), c.silent)
			}
		}
	}
}

// A member is late a quarter of an interval after its time, not before; and after an interval
// in which it did not run it begins all waits again.
func TestBoundsOfLateness(t *testing.T) {
	c := newCrowd(timeout, true)
	c.run(10*interval, interval/4, 1)
	if h := c.TakeHealth(); h.Late > 0 || h.Intervals == 0 {
		t.Errorf("%+v, a quarter of an interval late", h)
	}
	c.run(10*interval, interval/4+1, 1)
	if h := c.TakeHealth(); h.Late != h.Intervals {
		t.Errorf("%+v, later than that", h)
	}
	for late, silent := range map[protocol.Time]bool{interval: true, interval + 1: false} {
		c := newCrowd(timeout, true)
		c.run(10*interval, 0, 1, 2, 3)
		c.run(40*timeout, late)
		if c.silent[1] != silent {
			t.Errorf("%d late each time: silent: %v", late, c.silent[1])
		}
	}
}

// What a program sets is kept. What it leaves open fits: five heartbeats within a timeout.
func TestTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.OneOf(rapid.Just(protocol.Time(0)), rapid.Custom(func(t *rapid.T) protocol.Time {
			return protocol.Time(rapid.Int64Range(5, 1e10).Draw(t, "ns"))
		}))
		i, o, quorum := times.Draw(t, "interval"), times.Draw(t, "timeout"), rapid.Bool().Draw(t, "quorum")
		c := Times(i, o, quorum)
		if i > 0 && c.Interval != i || o > 0 && c.Timeout != o {
			t.Fatalf("%+v, of what was set", c)
		}
		if (c.Timeout > 0) != (o > 0 || quorum) || c.Interval <= 0 {
			t.Fatalf("%+v", c)
		}
		if (i == 0 || o == 0) && c.Timeout > 0 && 5*c.Interval > c.Timeout {
			t.Fatalf("%+v: fewer than five heartbeats", c)
		}
		if i == 0 && o == 0 && c.Interval != defaultInterval {
			t.Fatalf("%+v", c)
		}
	})
	if c := Times(0, -1, true); c.Timeout != 0 || c.Interval != defaultInterval {
		t.Errorf("%+v, without a timeout", c)
	}
}
