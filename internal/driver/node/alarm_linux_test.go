package node

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/internal/driver/timers"
)

// A node in real time is woken by an alarm that is precise, and one in virtual time by one that
// follows that.
func TestAlarmOfNode(t *testing.T) {
	for precise, begin := range map[bool]func(func()) timers.Alarm{true: timers.Precise, false: timers.Coarse} {
		n, want := New(Config{Precise: precise}), begin(func() {})
		if got, want := fmt.Sprintf("%T", n.alarm), fmt.Sprintf("%T", want); got != want {
			t.Errorf("precise %t: %s, not %s", precise, got, want)
		}
		n.alarm.Stop()
		want.Stop()
	}
}
