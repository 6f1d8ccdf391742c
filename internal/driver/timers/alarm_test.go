package timers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/driver/timers"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var alarms = map[string]func(func()) timers.Alarm{"coarse": timers.Coarse, "precise": timers.Precise}

// An alarm fires once for each time that was set, near or far, never before it, and not
// after Stop.
func TestAlarms(t *testing.T) {
	for name, newAlarm := range alarms {
		t.Run(name, func(t *testing.T) {
			fired := make(chan time.Time, 16)
			a := newAlarm(func() { fired <- time.Now() })
			for _, d := range []time.Duration{0, 100 * time.Microsecond, 2 * time.Millisecond, 20 * time.Millisecond} {
				began := time.Now()
				a.Set(d)
				if took := (<-fired).Sub(began); took < d {
					t.Errorf("set to %v, fires after %v", d, took)
				}
			}
			a.Set(2 * time.Millisecond)
			a.Stop()
			select {
			case <-fired:
				t.Error("fires after Stop")
			case <-time.After(30 * time.Millisecond):
			}
		})
	}
}

// How late alarms fire, in microseconds. On a host of which another process takes a share,
// run it beside one busy loop for each processor, and on an overloaded one beside several.
func BenchmarkLateness(b *testing.B) {
	for name, newAlarm := range alarms {
		b.Run(name, func(b *testing.B) {
			fired := make(chan time.Time, 1)
			a := newAlarm(func() { fired <- time.Now() })
			defer a.Stop()
			var late []time.Duration
			for i := range b.N {
				d := time.Duration(200+i%16*100) * time.Microsecond
				began := time.Now()
				a.Set(d)
				late = append(late, (<-fired).Sub(began)-d)
			}
			slices.Sort(late)
			for _, percent := range []int{10, 50, 90, 99} {
				b.ReportMetric(float64(late[len(late)*percent/100].Microseconds()), fmt.Sprintf("p%d-µs", percent))
			}
		})
	}
}
