package faults

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// talkingGroup starts processes that broadcast every 20 ms, and waits until all have
// heard each other and exchanged heartbeats.
func talkingGroup(t *testing.T, size int) *talkers {
	t.Helper()
	ts := startTalkers(t, testutil.FreeAddresses(t, size), nil, talkerConfig{Pace: 20 * time.Millisecond})
	ts.awaitTalk(ranksBut(size))
	time.Sleep(time.Second)
	return ts
}

// Case 5: a process hangs, and another one is killed. The hung one is noticed without a
// further detector. It holds up neither the broadcasts of the others, nor for long the
// view without both.
func TestCase5HungProcess(t *testing.T) {
	const size, hung, killed = 10, 5, 7
	kills := testutil.Rounds.Or(2)
	var blocked, views []int64
	for range kills {
		ts := talkingGroup(t, size)
		others := ranksBut(size, hung, killed)
		ts.blocked(others)
		ts.signal(syscall.SIGSTOP, hung)
		ts.signal(syscall.SIGKILL, killed)
		views = append(views, ts.awaitView(others).Milliseconds())
		ts.awaitTalk(others) // and so have told how long they were blocked
		blocked = append(blocked, ts.blocked(others).Milliseconds())
		for _, p := range ts.all {
			p.end()
		}
	}
	figures(t, map[string]any{
		"case": 5, "kills": kills, "blocked_ms_max": slices.Max(blocked), "view_ms": slices.Max(views),
		"blocked_ms": blocked, "views_ms": views,
	})
	slices.Sort(views)
	if b, v := slices.Max(blocked), views[kills/2]; testutil.Full.On() && (b > 100 || v > 2500) {
		t.Errorf("broadcasts blocked for %d ms, and the view came after %d ms; want at most 100 and 2500", b, v)
	}
}

// Case 24: the coordinator hangs in the midst of a change that another hung process
// holds up. The next one takes over.
func TestCase24HungCoordinator(t *testing.T) {
	const size, most = 7, 2500
	ts := talkingGroup(t, size)
	others := ranksBut(size, 0, 5, 6)
	ts.blocked(others)
	ts.signal(syscall.SIGSTOP, 5)
	ts.signal(syscall.SIGKILL, 6)
	time.Sleep(20 * time.Millisecond) // the first attempt has frozen all
	ts.signal(syscall.SIGSTOP, 0)
	took := ts.awaitView(others).Milliseconds()
	ts.awaitTalk(others) // and so have told how long they were blocked
	blocked := ts.blocked(others).Milliseconds()
	figures(t, map[string]any{"case": 24, "blocked_ms_max": blocked, "view_ms": took})
	if testutil.Full.On() && (blocked > most || took > most) {
		t.Errorf("blocked for %d ms, and a view after %d ms; want at most %d", blocked, took, most)
	}
}

// Case 6: more than half of a group does not answer for longer than an attempt at a view
// waits, and then all are fine again. Two of five are stopped, and one is killed.
func TestCase6StoppedMajority(t *testing.T) {
	const size, killed, stopped = 5, 4, 8 * time.Second
	var took []int64
	for range testutil.Rounds.Or(1) {
		ts := talkingGroup(t, size)
		ts.signal(syscall.SIGSTOP, 1, 2)
		ts.signal(syscall.SIGKILL, killed)
		time.Sleep(stopped)
		ts.signal(syscall.SIGCONT, 1, 2)
		survivors := ranksBut(size, killed)
		took = append(took, ts.awaitView(survivors).Milliseconds())
		ts.awaitTalk(survivors)
	}
	figures(t, map[string]any{"case": 6, "variant": "stopped", "view_ms": took})
	if testutil.Full.On() && slices.Max(took) > 5000 {
		t.Errorf("views came after %v ms, want at most 5000", took)
	}
}

// Case 6 too: the coordinator's host is cut off while a member is killed, and heals. The
// coordinator learns that the others have gone on, and is a member again.
func TestCase6CoordinatorCutOff(t *testing.T) {
	const size, killed, cut = 5, 4, 8500 * time.Millisecond
	var took []int64
	for range testutil.Rounds.Or(1) {
		n := netns.New(t, size)
		addresses := make([]string, size)
		for h := range addresses {
			addresses[h] = fmt.Sprintf("%s:7400", n.Address(h))
		}
		ts := startTalkers(t, addresses, n.Command, talkerConfig{Pace: 20 * time.Millisecond})
		ts.awaitTalk(ranksBut(size))
		n.Cut(0)
		ts.signal(syscall.SIGKILL, killed)
		ts.awaitView(ranksBut(size, 0, killed))
		time.Sleep(cut)
		n.Heal(0)
		survivors := ranksBut(size, killed)
		took = append(took, ts.awaitView(survivors).Milliseconds())
		ts.awaitTalk(survivors)
	}
	figures(t, map[string]any{"case": 6, "variant": "cut off", "view_ms": took})
	if testutil.Full.On() && slices.Max(took) > 5000 {
		t.Errorf("views came after %v ms, want at most 5000", took)
	}
}

// Case 23: a member of a static group is stopped while a message of 64 MiB is sent, four
// times what the others keep. Its program is told of the loss although its sender sends
// nothing more.
func TestCase23LossOfALongMessage(t *testing.T) {
	const size, stopped = 3, 4 * time.Second
	ts := startTalkers(t, testutil.FreeAddresses(t, size), nil, talkerConfig{Static: true})
	send := func(bytes int) {
		if _, err := fmt.Fprintln(ts.all[0].input, bytes); err != nil {
			t.Fatal(err)
		}
	}
	send(64)
	others := ranksBut(size, 0)
	ts.await("the first message", others, func(p *talker) bool { return p.have["0"] == 1 })
	ts.signal(syscall.SIGSTOP, 2)
	send(64 << 20)
	ts.await("the long message", []int{1}, func(p *talker) bool { return p.have["0"] == 2 })
	time.Sleep(stopped)
	ts.signal(syscall.SIGCONT, 2)
	took := ts.await("the message or its loss", []int{2}, func(p *talker) bool { return p.lost > 0 || p.have["0"] == 2 })
	p := ts.all[2]
	p.mu.Lock()
	defer p.mu.Unlock()
	figures(t, map[string]any{"case": 23, "lost": p.lost, "told_ms": took.Milliseconds()})
	if p.lost > 1 || p.lost == 1 && p.have["0"] == 2 {
		t.Errorf("one message: %d lost, %d received after the first", p.lost, p.have["0"]-1)
	}
}
