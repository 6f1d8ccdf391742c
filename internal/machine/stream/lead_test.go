package stream

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// A correction whose timer is late beside the lead waits until processors are free, but for
// a few leads only, however late timers are: a member may depend on it. A timer that is late
// as timers of healthy hosts are postpones nothing.
func TestYieldsAreBounded(t *testing.T) {
	for _, lead := range []protocol.Time{200 * microsecond, 3 * millisecond, 50 * millisecond} {
		for _, late := range []protocol.Time{0, lead / 8, lead / 4, lead, 10 * lead} {
			c, began := correction{due: 1}, protocol.Time(1)
			now := c.due + late
			for c.yield(now, lead) {
				if c.due != now+2*late {
					t.Errorf("lead %v, late by %v: goes on after %v", time.Duration(lead), time.Duration(late),
						time.Duration(c.due-now))
				}
				now = c.due + late
			}
			yielded := now - began - late
			if late < lead/4 && yielded > 0 {
				t.Errorf("lead %v, late by %v: yields for %v", time.Duration(lead), time.Duration(late), time.Duration(yielded))
			}
			if late == lead/4 && yielded == 0 {
				t.Errorf("lead %v, late by %v: does not yield", time.Duration(lead), time.Duration(late))
			}
			if most := 2 * maxYield * lead; yielded > most {
				t.Errorf("lead %v, late by %v: yields for %v", time.Duration(lead), time.Duration(late), time.Duration(yielded))
			}
		}
	}
}

// All yields of a correction together take maxYield leads, to the last of them.
func TestYieldsAreBoundedToTheLast(t *testing.T) {
	const lead = 8 * millisecond
	for late, want := range map[protocol.Time]bool{maxYield * lead / 2: true, maxYield*lead/2 + 1: false} {
		c := correction{due: 1}
		if got := c.yield(1+late, lead); got != want {
			t.Errorf("late by %v: yields: %t", time.Duration(late), got)
		}
	}
	if s := (skew{mean: 10, above: 20, near: 80}); s.apart() != 70 {
		t.Errorf("apart %d, and the neighbor's 80", s.apart())
	}
	if s := (skew{mean: 10, above: 35, near: 80}); s.apart() != 80 {
		t.Errorf("apart %d", s.apart())
	}
}

// The lead follows how far apart the tree reaches neighbors, up and down, whichever of the
// two is first, and stays within its bounds.
func TestLeadFollowsTheSkew(t *testing.T) {
	s := skew{mean: initialSkew}
	for _, step := range []struct {
		apart, least, most protocol.Time
		measurements       int
	}{
		{50 * microsecond, minLead, minLead, 40},
		{5 * millisecond, 7500 * microsecond, 9 * millisecond, 60},
		{400 * millisecond, maxLead, maxLead, 60},
		{1 * millisecond, 1500 * microsecond, 2200 * microsecond, 24}, // an overload is over: sooner
	} {
		for i := range step.measurements {
			here, there := protocol.Time(1), 1+step.apart
			if i%2 == 1 {
				here, there = there, here
			}
			s.measure(here, there)
		}
		if lead := s.lead(); lead < step.least || lead > step.most {
			t.Errorf("neighbors %v apart: a lead of %v", time.Duration(step.apart), time.Duration(lead))
		}
	}
}
