package testutil

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test whose failure is looked at.
type failing struct {
	testing.TB
	printed []string
}

func (f *failing) Helper() {}
func (f *failing) Logf(format string, a ...any) {
	f.printed = append(f.printed, fmt.Sprintf(format, a...))
}

func (f *failing) Fatalf(format string, a ...any) {
	f.Logf(format, a...)
	runtime.Goexit()
}

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Eventually(t, "later", func() bool { return time.Since(began) >= 59*time.Second })
		if took := time.Since(began); took > 59*time.Second+longestPause {
			t.Errorf("noticed after %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f, began, calls := &failing{TB: t}, time.Now(), 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			Eventually(f, "complete", func() bool { calls++; return false }, func() any { return calls })
		}()
		<-done
		if took := time.Since(began); took != patience {
			t.Errorf("failed after %v", took)
		}
		want := fmt.Sprintf("after 1m0s, still waiting for: complete\n%d", calls)
		if got := strings.Join(f.printed, "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The condition is looked at once more when the time is over.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Within(time.Second, func() bool { return time.Since(began) >= time.Second }) {
			t.Error("missed what is true at the end")
		}
		if Within(0, func() bool { return false }) || !Within(0, func() bool { return true }) {
			t.Error("one look is wrong")
		}
	})
}

func TestAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ended := time.Now(), time.Duration(0)
		go func() {
			time.Sleep(time.Hour)
			ended = time.Since(began)
		}()
		Advance(time.Hour)
		if ended != time.Hour {
			t.Errorf("the goroutine ended after %v", ended)
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("no panic outside a bubble")
		}
	}()
	Advance(time.Hour)
}
