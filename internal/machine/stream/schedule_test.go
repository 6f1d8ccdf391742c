package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Segments that arrive do not move a correction that is scheduled, was postponed, or runs: at full
// rate, they would do so all the time.
func TestSegmentsDoNotMoveACorrection(t *testing.T) {
	m, err := New(Config{Rank: 1, Size: 8, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.open(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &f.correction
	f.next = 5
	m.scheduleCorrection(1000, f)
	due := c.due
	if due == protocol.Never || due <= 1000 || c.since != 1000 || m.due > due {
		t.Fatalf("nothing is scheduled: %+v", c)
	}
	for _, running := range []bool{false, true} {
		c.running, c.dense, c.yielded, c.due = running, true, 7, due+3
		for now := protocol.Time(2000); now < due+1000; now += due / 10 {
			f.next++
			m.scheduleCorrection(now, f)
			if c.due != due+3 || !c.dense || c.yielded != 7 || c.since != 1000 {
				t.Fatalf("running %t: a segment at %d moves it: %+v", running, now, c)
			}
		}
	}
	c.stop()
	c.upTo = f.next
	m.scheduleCorrection(due, f)
	if c.due != protocol.Never {
		t.Error("a correction of nothing is scheduled")
	}
}
