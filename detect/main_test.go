//go:build unix

package detect

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also what child processes run. It checks that closed detectors leave
// no goroutine.
func TestMain(m *testing.M) {
	if os.Getenv(childRole) != "" {
		runListener()
		return
	}
	goleak.VerifyTestMain(m)
}
