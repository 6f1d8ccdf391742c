package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// tally is what one member has received of each sender, and what it was told is lost.
type tally struct {
	mu             sync.Mutex
	received, lost map[int]int
	notices        int
}

func newTally() *tally { return &tally{received: map[int]int{}, lost: map[int]int{}} }

// receive counts what a group yields until ctx ends. It calls pause before each message.
func (c *tally) receive(ctx context.Context, g *pleach.Group, pause func()) {
	for m, err := range g.Messages(ctx) {
		c.mu.Lock()
		if lost, ok := errors.AsType[*pleach.LostError](err); ok {
			c.lost[lost.From] += int(lost.Count)
			c.notices++
		} else {
			c.received[m.From]++
		}
		c.mu.Unlock()
		pause()
	}
}

// of returns the counts of one sender.
func (c *tally) of(sender int) (received, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received[sender], c.lost[sender]
}

// awaitAll waits until every message of a sender is received or told lost.
func (c *tally) awaitAll(t *testing.T, sender, sent int) (received, lost int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		received, lost = c.of(sender)
		if received+lost >= sent {
			break
		}
	}
	if received+lost != sent {
		t.Errorf("of %d messages of rank %d, %d received and %d told lost", sent, sender, received, lost)
	}
	return received, lost
}

// slowMember has a member of four with Limits.Overflow = Drop receive nothing until another
// has sent 60 messages of 1 MiB.
func slowMember(t *testing.T) (received, lost [4]int) {
	t.Helper()
	const messages, size = 60, 1 << 20
	groups := start(t, 4, func(c *pleach.Config) { c.Limits.Overflow = pleach.Drop })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tallies [4]*tally
	sent := make(chan struct{})
	for r, g := range groups[1:] {
		c := newTally()
		tallies[r+1] = c
		go func() {
			if r == 0 {
				<-sent
			}
			c.receive(ctx, g, func() {})
		}()
	}
	for range messages {
		if err := groups[0].Broadcast(ctx, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	close(sent)
	for r := 1; r < 4; r++ {
		received[r], lost[r] = tallies[r].awaitAll(t, 0, messages)
	}
	return received, lost
}

// Case 2: a program that drops messages because it is slow costs no other member any.
func TestCase2SlowMemberCostsOthersNothing(t *testing.T) {
	_, lost := slowMember(t)
	figures(t, map[string]any{"case": 2, "lost_by_slow": lost[1], "lost_by_others": lost[2] + lost[3]})
	if lost[2]+lost[3] > 0 {
		t.Errorf("members that receive at once have lost %d and %d messages", lost[2], lost[3])
	}
}

// Case 3: a program that drops learns how many messages, each of which is many segments.
func TestCase3LossesCountMessages(t *testing.T) {
	received, lost := slowMember(t)
	figures(t, map[string]any{"case": 3, "received": received[1], "lost": lost[1]})
	if lost[1] == 0 {
		t.Error("nothing was lost, so nothing was counted")
	}
}

// Case 4: a sender waits for a program that does not receive, by default, for as long as
// its context allows. Nothing is lost meanwhile.
func TestCase4SendersWait(t *testing.T) {
	const size = 1 << 20
	groups := start(t, 3, func(c *pleach.Config) { c.Limits.SlowTimeout = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	prompt, slow := newTally(), newTally()
	go prompt.receive(ctx, groups[2], func() {})
	sent := 0
	var err error
	for err == nil && sent < 200 {
		patience, stop := context.WithTimeout(ctx, seconds())
		if err = groups[0].Broadcast(patience, make([]byte, size)); err == nil {
			sent++
		}
		stop()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after %d messages Broadcast returned %v, want the end of its context", sent, err)
	}
	before, _ := slow.of(0)
	go slow.receive(ctx, groups[1], func() {})
	if err := groups[0].Broadcast(ctx, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if _, err := groups[0].WaitStable(ctx); err != nil {
		t.Error(err)
	}
	var received, lost, got, gone int
	testutil.Within(time.Minute, func() bool { // the programs have what their members have
		received, lost = slow.of(0)
		got, gone = prompt.of(0)
		return lost+gone > 0 || received == got && received > sent
	})
	figures(t, map[string]any{"case": 4, "sent_before_waiting": sent, "received": received - before, "lost": lost})
	// The message whose context ended is sent, if it was accepted whole, or not at all.
	if lost > 0 || gone > 0 || received != got || received < sent+1 || received > sent+2 {
		t.Errorf("%d sent; the slow member received %d and lost %d, the other %d and %d", sent+1, received, lost, got, gone)
	}
}

// Case 21: all members of a static group broadcast at full rate, and drop what they do
// not receive in time. No stream stands still: every message is received or told lost.
func TestCase21NoStreamStandsStill(t *testing.T) {
	const members, size = 4, 8 << 10
	groups := start(t, members, func(c *pleach.Config) {
		c.Static, c.Limits.Overflow, c.Limits.KeepBytes, c.Limits.InboxBytes = true, pleach.Drop, 512<<10, 512<<10
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var tallies [members]*tally
	var loaded atomic.Bool
	loaded.Store(true)
	for r, g := range groups {
		c := newTally()
		tallies[r] = c
		received := 0
		go c.receive(ctx, g, func() {
			received++
			if received%500 == 0 && loaded.Load() {
				time.Sleep(50 * time.Millisecond) // the program is busy now and then
			}
		})
	}
	var sending sync.WaitGroup
	var sent [members]int
	began := time.Now()
	for r, g := range groups {
		sending.Go(func() {
			for time.Since(began) < seconds() {
				if err := g.Broadcast(ctx, make([]byte, size)); err != nil {
					t.Errorf("rank %d: %v", r, err)
					return
				}
				sent[r]++
			}
		})
	}
	sending.Wait()
	loaded.Store(false)
	lost, total := 0, 0
	for r, c := range tallies {
		for sender := range groups {
			if sender != r {
				_, gone := c.awaitAll(t, sender, sent[sender])
				lost, total = lost+gone, total+sent[sender]
			}
		}
	}
	figures(t, map[string]any{"case": 21, "deliveries": total, "told_lost": lost, "neither": 0})
}

// Case 22: a member lags by more than the others keep when the view changes. It is in the
// next view, and told what it has lost.
func TestCase22LaggingMemberAtAViewChange(t *testing.T) {
	for _, keep := range []int{128 << 10, 1 << 10} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) { lagIntoTheNextView(t, keep) })
	}
}

func lagIntoTheNextView(t *testing.T, keep int) {
	const messages = 100
	groups := start(t, 4, func(c *pleach.Config) {
		c.Limits.KeepBytes, c.Limits.InboxBytes, c.Limits.Overflow = keep, 64<<10, pleach.Drop
	})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for _, r := range []int{1, 3} { // and rank 2 takes nothing
		go newTally().receive(ctx, groups[r], func() {})
	}
	for range messages {
		if err := groups[0].Broadcast(ctx, make([]byte, 16<<10)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := groups[3].Close(); err != nil {
		t.Fatal(err)
	}
	for v := range groups[2].Views(ctx) {
		if !v.Has(3) {
			break
		}
	}
	took := time.Since(began)
	if err := groups[2].Broadcast(ctx, []byte("x")); err != nil {
		t.Error(err)
	}
	lagging := newTally()
	go lagging.receive(ctx, groups[2], func() {})
	received, lost := lagging.awaitAll(t, 0, messages)
	figures(t, map[string]any{
		"case": 22, "keep": keep, "view_ms": took.Milliseconds(), "received": received,
		"lost": lost,
	})
	if lost == 0 {
		t.Errorf("rank 2 was not told of any loss: %+v", groups[2].Stats())
	}
}
