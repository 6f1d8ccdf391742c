package stream

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// After a correction whose timer was late, the next one keeps its distance: on an
// overloaded host, one correction covers several messages. It is due within about a second
// all the same.
func TestCorrectionsOfABusyHostAreFarApart(t *testing.T) {
	for _, late := range []protocol.Time{2 * millisecond, 20 * millisecond, 90 * millisecond} {
		c := correction{due: 1}
		if !c.yield(1 + late) {
			t.Fatalf("a correction that is late by %v does not yield", time.Duration(late))
		}
		if apart := c.distance(); apart < min(20*late, maxWait) || apart > correctionInterval+maxWait {
			t.Errorf("late by %v: the next correction may begin after %v", time.Duration(late), time.Duration(apart))
		}
	}
	if onTime := (&correction{}).distance(); onTime != correctionInterval {
		t.Errorf("on time: the next correction may begin after %v", time.Duration(onTime))
	}
}
