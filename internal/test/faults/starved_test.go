package faults

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Case 38: a member gets to run for 5 ms of every 500, and the others wait for it. It leaves,
// and they go on as before, without a loss. When it runs again, it is back.
func TestCase38StarvedMember(t *testing.T) {
	const size, starved, bytes = 5, 3, 64 << 10
	ts := startTalkers(t, testutil.FreeAddresses(t, size), nil, talkerConfig{Flood: bytes})
	ts.await("the flood", ranksBut(size, 0), func(p *talker) bool { return p.have["0"] > 100 })
	before := ts.rate(2 * time.Second)
	resume := ts.starve(starved, 5*time.Millisecond, 500*time.Millisecond)
	during := ts.rate(2 * time.Second)
	took := 2*time.Second + ts.awaitView(ranksBut(size, starved))
	after := ts.rate(time.Second)
	resume()
	ts.endFlood()
	lost := 0
	for _, r := range ranksBut(size, starved) {
		lost += ts.all[r].lost + ts.all[r].gaps
	}
	figures(t, map[string]any{
		"case": 38, "left_ms": took.Milliseconds(), "of_before": during / before, "of_before_without": after / before,
		"lost": lost,
	})
	if lost > 0 {
		t.Errorf("the others have lost %d messages", lost)
	}
	if ts.logged(0, "cause=left") && !ts.logged(starved, "this process is starved of CPU") { // it was not suspected
		t.Error("the starved process does not say why it leaves")
	}
	if testutil.Full.On() && (took > 12*time.Second || after < 0.5*before) {
		t.Errorf("it left after %v, and then the others had %.2f of their rate; want 12 s and 0.5", took, after/before)
	}
}

// Case 38: a program takes its time with each message, less than SlowTimeout. Its process
// runs, so it stays a member, and the others wait for it.
func TestCase38SlowProgramStays(t *testing.T) {
	const size, slow = 4, 3
	ts := startTalkers(t, testutil.FreeAddresses(t, size), nil, talkerConfig{
		Flood: 64 << 10, BusyRank: slow,
		Busy: 2 * time.Second,
	})
	ts.await("the flood", ranksBut(size, 0), func(p *talker) bool { return p.have["0"] > 0 })
	time.Sleep(12 * time.Second) // more than two of the times after which it would leave
	for r, p := range ts.all {
		p.mu.Lock()
		if p.view != 1 {
			t.Errorf("rank %d is in view %d", r, p.view)
		}
		p.mu.Unlock()
	}
}

// logged reports whether a talker has printed a line with a text.
func (ts *talkers) logged(rank int, text string) bool {
	p := ts.all[rank]
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.log, func(line string) bool { return strings.Contains(line, text) })
}

// rate returns how many messages of the flood a second rank 1 receives.
func (ts *talkers) rate(watched time.Duration) float64 {
	first, _ := ts.all[1].floodState()
	began := time.Now()
	time.Sleep(watched)
	last, _ := ts.all[1].floodState()
	return float64(last-first) / time.Since(began).Seconds()
}

// starve lets a process run only for a part of each period, until resume is called.
func (ts *talkers) starve(rank int, run, period time.Duration) (resume func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	process := ts.all[rank].cmd.Process
	go func() {
		defer close(ended)
		for {
			_ = process.Signal(syscall.SIGSTOP)
			select {
			case <-done:
				_ = process.Signal(syscall.SIGCONT)
				return
			case <-time.After(period - run):
			}
			_ = process.Signal(syscall.SIGCONT)
			time.Sleep(run)
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
