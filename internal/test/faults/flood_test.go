package faults

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A flood is a root that broadcasts long messages as fast as it may. Its messages are
// numbered, so that a receiver sees each gap. The last one is short.

// flood broadcasts until a line of input, and then a last message.
func (c *talkerConfig) flood(ctx context.Context, g *pleach.Group, lines <-chan string) {
	payload := make([]byte, c.Flood)
	for number := uint64(0); ctx.Err() == nil; number++ {
		binary.BigEndian.PutUint64(payload, number)
		select {
		case <-lines:
			_ = g.Broadcast(ctx, payload[:8])
			return
		default:
		}
		_ = g.Broadcast(ctx, payload)
	}
}

// floodCheck checks the messages of a flood as one member receives them, from the first
// one that it gets since it joined.
type floodCheck struct {
	busy, every time.Duration
	since       time.Time // the last time that it was busy, or began
	next        uint64    // 0: it has none yet
}

// receive checks a message. It prints a gap, and the end. A busy program takes its time.
func (f *floodCheck) receive(ctx context.Context, m pleach.Message) {
	if m.From != 0 {
		return
	}
	number := binary.BigEndian.Uint64(m.Data)
	if f.next > 0 && number != f.next {
		fmt.Println("gap", f.next, number)
	}
	f.next = number + 1
	if len(m.Data) == 8 {
		fmt.Println("ended", number)
	}
	if f.since.IsZero() {
		f.since = time.Now()
	}
	if f.busy > 0 && time.Since(f.since) >= f.every {
		f.since = time.Now()
		fmt.Println("busy")
		select {
		case <-time.After(f.busy):
		case <-ctx.Done():
		}
		fmt.Println("ready")
	}
}

// floodState is what a test sees of a flood: how many messages a talker has, and whether
// it is busy.
func (p *talker) floodState() (messages int, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have["0"], p.busy
}

// floodFaults are the faults during a flood: the program of one rank is busy, and another rank is
// stopped, for stop at the end of each period.
type floodFaults struct {
	busy, stopped int
	stop, period  time.Duration
}

// floodRate lets the flood run for a time and returns how many messages a second rank 1
// receives while no member is slow, nor was a moment before.
func (ts *talkers) floodRate(run time.Duration, f floodFaults) (rate float64, quiet time.Duration) {
	const interval, moment = 100 * time.Millisecond, 500 * time.Millisecond
	var received int
	began, disturbed, running := time.Now(), time.Time{}, true
	last, _ := ts.all[1].floodState()
	sampled := began
	for time.Since(began) < run {
		if f.stop > 0 && running == (time.Since(began)%f.period >= f.period-f.stop) {
			running = !running
			if running {
				ts.signal(syscall.SIGCONT, f.stopped)
			} else {
				ts.signal(syscall.SIGSTOP, f.stopped)
			}
		}
		time.Sleep(interval)
		messages, _ := ts.all[1].floodState()
		now := time.Now()
		if _, busy := ts.all[f.busy].floodState(); busy || !running {
			disturbed = now
		}
		if now.Sub(disturbed) > moment {
			received, quiet = received+messages-last, quiet+now.Sub(sampled)
		}
		last, sampled = messages, now
	}
	if !running {
		ts.signal(syscall.SIGCONT, f.stopped)
	}
	return float64(received) / quiet.Seconds(), quiet
}

// Case 1 at full rate: a root sends messages of 1 MiB as fast as it may to seven
// processes. The program of one of them stops for 4 s every 10 s, and one is stopped for
// 3 s every 15 s. The members that stay in the view lose nothing, the memory of all is
// bounded, and while no member is slow the group is as fast as without those.
func TestCase1FullRate(t *testing.T) {
	const size, busy, stopped, bytes = 8, 3, 5, 1 << 20
	run := min(20*seconds(), time.Minute)
	calm := startTalkers(t, testutil.FreeAddresses(t, size), nil, talkerConfig{Flood: bytes})
	without, _ := calm.floodRate(run/4, floodFaults{busy: busy, stopped: stopped})
	for _, p := range calm.all {
		p.end()
	}
	ts := startTalkers(t, testutil.FreeAddresses(t, size), nil, talkerConfig{
		Flood: bytes, BusyRank: busy,
		Busy: 4 * time.Second, Every: 10 * time.Second,
	})
	rate, quiet := ts.floodRate(run, floodFaults{busy, stopped, 3 * time.Second, 15 * time.Second})
	memory, lost, gaps := ts.endFlood()
	figures(t, map[string]any{
		"case": 1, "seconds": run.Seconds(), "lost": lost, "gaps": gaps, "memory_mb": memory,
		"quiet_seconds": quiet.Seconds(),
		"per_second":    rate, "per_second_without": without, "of_without": rate / without,
	})
	if lost > 0 || gaps > 0 {
		t.Errorf("%d messages lost, %d gaps", lost, gaps)
	}
	if testutil.Full.On() && (rate < 0.9*without || slices.Max(memory) > 200) {
		t.Errorf("%.2f of the rate without slow members, at most %d MB; want 0.9 and 200", rate/without, slices.Max(memory))
	}
}

// endFlood ends a flood and waits until all members have its last message. It returns
// the memory that each process has used at most, and what all have lost.
func (ts *talkers) endFlood() (megabytes []int, lost, gaps int) {
	ts.t.Helper()
	everyone := ranksBut(len(ts.all))
	ts.awaitView(everyone)
	if _, err := fmt.Fprintln(ts.all[0].input); err != nil {
		ts.t.Fatal(err)
	}
	ts.await("the last message", everyone[1:], func(p *talker) bool { return p.ended })
	for _, p := range ts.all {
		peak, err := peakMemoryOf(strconv.Itoa(p.cmd.Process.Pid))
		if err != nil {
			ts.t.Fatal(err)
		}
		p.mu.Lock()
		lost, gaps = lost+p.lost, gaps+p.gaps
		p.mu.Unlock()
		megabytes = append(megabytes, peak/1e6)
	}
	return megabytes, lost, gaps
}
