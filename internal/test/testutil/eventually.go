package testutil

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

const (
	patience     = time.Minute
	firstPause   = time.Millisecond
	longestPause = 50 * time.Millisecond
)

// Eventually waits until ok returns true. After a minute it fails the test: the message has what
// the test waits for and, if a function for it is passed, the state at the end. It must be called
// from the goroutine of the test.
func Eventually(t testing.TB, what string, ok func() bool, state ...func() any) {
	t.Helper()
	if Within(patience, ok) {
		return
	}
	for _, s := range state {
		what = fmt.Sprintf("%s\n%+v", what, s())
	}
	t.Fatalf("after %v, still waiting for: %s", patience, what)
}

// Within calls ok until it returns true, with pauses that grow, and reports whether it did before the
// time was over. It is for processes and goroutines that cannot fail the test, and for waits that are
// longer or shorter than those of [Eventually].
func Within(most time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(most)
	for pause := firstPause; !ok(); pause = min(pause*3/2, longestPause) {
		if !time.Now().Before(deadline) {
			return false
		}
		time.Sleep(min(pause, max(time.Until(deadline), 0)))
	}
	return true
}

// Goroutines returns the stacks of all goroutines, as a state for [Eventually].
func Goroutines() any {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// Advance lets virtual time pass in a bubble of [testing/synctest], until all other goroutines of
// the bubble are blocked at the end of it. Outside a bubble it panics. At most one goroutine of a
// bubble may be in it at a time.
func Advance(d time.Duration) {
	synctest.Wait() // panics outside a bubble, before the sleep
	time.Sleep(d)
	synctest.Wait()
}
