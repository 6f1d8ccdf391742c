package membership

import (
	"os"
	"runtime/debug"
	"testing"
)

// Schedules and seeds are many short lives in little memory: collecting garbage less often saves
// a third of the processor's time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
