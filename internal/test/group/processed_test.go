package group_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// stepped is a program that processes a message only when the test lets it.
type stepped struct {
	let       chan struct{}
	processed atomic.Int64
}

func (p *stepped) process(pleach.Message, error) {
	<-p.let
	p.processed.Add(1)
}

// ignore is the program of a member that has nothing to do.
func ignore(pleach.Message, error) {}

// waitProcessed waits for a receipt of processing in another goroutine.
func waitProcessed(t *testing.T, g *pleach.Group) <-chan error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	result := make(chan error, 1)
	go func() {
		_, err := g.WaitStable(ctx, pleach.Processed())
		result <- err
	}()
	return result
}

// A receipt of processing comes when every program has processed the last message, in OnMessage,
// Messages and each subscription, and not before (case 70).
func TestProcessedFollowsThePrograms(t *testing.T) {
	const messages = 3
	read := func(p *stepped, sequence func(context.Context) iter.Seq2[pleach.Message, error]) {
		go func() {
			for m, err := range sequence(t.Context()) {
				p.process(m, err)
			}
		}()
	}
	for name, topic := range map[string]string{
		"OnMessage": "", "OnMessage, topic": "news", "Messages": "",
		"subscriptions": "news",
	} {
		t.Run(name, func(t *testing.T) {
			programs := []*stepped{{let: make(chan struct{}, messages)}}
			groups := joinWhole(t, 3, func(c *pleach.Config) {
				switch {
				case c.Rank == 2:
					c.OnMessage = ignore
				case c.Rank == 1 && name[0] == 'O':
					c.OnMessage = programs[0].process
				}
			})
			switch name {
			case "Messages":
				read(programs[0], groups[1].Messages)
			case "subscriptions":
				programs = append(programs, &stepped{let: make(chan struct{}, messages)})
				for _, p := range programs {
					s, err := groups[1].Subscribe(topic)
					if err != nil {
						t.Fatal(err)
					}
					read(p, s.Messages)
				}
			}
			for range messages {
				broadcast := func() error { return groups[0].Broadcast(t.Context(), []byte("x")) }
				if topic != "" {
					broadcast = func() error { return groups[0].BroadcastTopic(t.Context(), topic, []byte("x")) }
				}
				if err := broadcast(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := groups[0].WaitStable(t.Context()); err != nil {
				t.Fatal("received:", err)
			}
			result := waitProcessed(t, groups[0])
			for _, p := range programs {
				for i := range messages {
					select {
					case err := <-result:
						t.Fatalf("a receipt with %d of %d processed: %v", i, messages, err)
					case <-time.After(10 * time.Millisecond):
					}
					p.let <- struct{}{}
				}
			}
			if err := <-result; err != nil {
				t.Error(err)
			}
			for _, p := range programs {
				if n := p.processed.Load(); n != messages && name != "Messages" {
					t.Errorf("a receipt with %d of %d processed", n, messages)
				}
			}
		})
	}
}

// Without a program that receives there is no receipt of processing: the error names the member.
// The message of a loop that was left is processed when another loop begins.
func TestProcessedNeedsAProgram(t *testing.T) {
	groups := joinWhole(t, 2, nil)
	for range 2 {
		if err := groups[0].Broadcast(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	unprocessed := func(what string) {
		t.Helper()
		if _, err := groups[0].WaitStable(t.Context()); err != nil {
			t.Fatalf("%s, received: %v", what, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := groups[0].WaitStable(ctx, pleach.Processed())
		var unstable *pleach.UnstableError
		if !errors.As(err, &unstable) || !unstable.Processed || !slices.Equal(unstable.Unanswered, []int{1}) {
			t.Errorf("%s: %v", what, err)
		}
	}
	unprocessed("nobody receives")
	for taken := 1; taken <= 2; taken++ {
		for range groups[1].Messages(t.Context()) {
			break
		}
		unprocessed("the loop was left")
	}
	result := waitProcessed(t, groups[0])
	go func() {
		for range groups[1].Messages(t.Context()) {
			t.Error("a third message")
		}
	}()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// If several goroutines receive, a message that one of them still has is not processed, although
// others have processed later ones.
func TestProcessedOfSeveralGoroutines(t *testing.T) {
	groups := joinWhole(t, 2, nil)
	held, release := make(chan struct{}), make(chan struct{})
	var took atomic.Int64
	for range 2 {
		go func() {
			for range groups[1].Messages(t.Context()) {
				if took.Add(1) == 1 {
					close(held)
					<-release
				}
			}
		}()
	}
	if err := groups[0].Broadcast(t.Context(), []byte("held")); err != nil {
		t.Fatal(err)
	}
	<-held
	for range 5 {
		if err := groups[0].Broadcast(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	result := waitProcessed(t, groups[0])
	select {
	case err := <-result:
		t.Errorf("a receipt although the first message is not processed: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// Receipts of processing span memberships, of the sender and of receivers: what was received, but
// maybe not processed, in an earlier one is listed.
func TestProcessedSpansMemberships(t *testing.T) {
	sender, slow, _ := outpacedBeside(t, func(slow *pleach.Group) {
		for range 3 {
			if err := slow.Broadcast(t.Context(), []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := slow.WaitStable(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	again := make(chan struct{})
	go func() {
		for _, err := range slow.Messages(t.Context()) {
			if _, ok := errors.AsType[*pleach.GapError](err); ok {
				close(again)
			}
		}
	}()
	<-again
	if _, err := slow.WaitStable(t.Context()); err != nil {
		t.Errorf("received: %v", err)
	}
	_, err := slow.WaitStable(t.Context(), pleach.Processed())
	var unconfirmed *pleach.UnconfirmedError
	if !errors.As(err, &unconfirmed) || !unconfirmed.Processed || unconfirmed.Messages() != 3 {
		t.Errorf("%v", err)
	}
	if err := sender.Broadcast(t.Context(), []byte("again")); err != nil {
		t.Fatal(err)
	}
	if err := <-waitProcessed(t, sender); err != nil {
		t.Errorf("of a receiver in its second membership: %v", err)
	}
}

// A program that processes nothing while messages wait shows in the status until it goes on.
func TestStuckProgramShows(t *testing.T) {
	p := &stepped{let: make(chan struct{}, 2)}
	groups := joinWhole(t, 2, func(c *pleach.Config) {
		c.Limits.SlowTimeout = 50 * time.Millisecond
		if c.Rank == 1 {
			c.OnMessage = p.process
		}
	})
	await := func(what string, is func(s []pleach.StuckConsumer) bool) {
		t.Helper()
		testutil.Eventually(t, what, func() bool { return is(groups[1].Status().Stuck) },
			func() any { return groups[1].Status().Stuck })
	}
	for range 2 {
		if err := groups[0].Broadcast(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	await("it processes nothing", func(s []pleach.StuckConsumer) bool {
		return len(s) == 1 && s[0].Topic == "" && s[0].Waiting > 0 && !s[0].Since.IsZero()
	})
	p.let <- struct{}{}
	p.let <- struct{}{}
	await("it goes on", func(s []pleach.StuckConsumer) bool { return len(s) == 0 })
}

// A process is current within a time if it has heard from a quorum within it, and its program has
// processed what it received (case 71).
func TestFreshWithin(t *testing.T) {
	p := &stepped{let: make(chan struct{}, 1)}
	groups := joinWhole(t, 3, func(c *pleach.Config) {
		c.OnMessage = ignore
		if c.Rank == 1 {
			c.OnMessage = p.process
		}
	})
	await := func(what string, g *pleach.Group, d time.Duration, want bool) {
		t.Helper()
		testutil.Eventually(t, fmt.Sprintf("%s: current within %v: %t", what, d, want),
			func() bool { return g.FreshWithin(d) == want })
	}
	if groups[1].FreshWithin(time.Hour) {
		t.Error("current before it has asked anybody")
	}
	await("all are there", groups[1], 10*time.Second, true)
	if err := groups[0].Broadcast(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	await("its program has a message in its hands", groups[1], 300*time.Millisecond, false)
	p.let <- struct{}{}
	await("its program has processed it", groups[1], 10*time.Second, true)
	for _, g := range []*pleach.Group{groups[0], groups[2]} {
		if err := g.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	await("it is alone", groups[1], 300*time.Millisecond, false)
}

// A process that comes back is not current, and Views has the error, until its program has got the
// gap. Then OnCurrent is called, as it was in the first membership.
func TestCurrentComesAfterTheGap(t *testing.T) {
	calls := make(chan string, 10)
	onCurrent := func() { calls <- "current" }
	_, slow, _ := outpacedAs(t, pleach.Config{OnCurrent: onCurrent}, func(slow *pleach.Group) {
		ctx, cancel := context.WithCancel(t.Context())
		receiving := make(chan struct{})
		go func() {
			defer close(receiving)
			for m := range slow.Messages(ctx) {
				t.Errorf("first %+v", m)
			}
		}()
		if got := <-calls; got != "current" {
			t.Errorf("first %s", got)
		}
		cancel()
		<-receiving
	})
	go func() {
		for _, err := range slow.Messages(t.Context()) {
			if _, ok := errors.AsType[*pleach.GapError](err); !ok {
				continue
			}
			if err := slow.View().Err; !errors.Is(err, pleach.ErrTooSlow) {
				t.Errorf("before the program is past the gap, the view has %v", err)
			}
			if slow.FreshWithin(time.Hour) {
				t.Error("current before the program is past the gap")
			}
			calls <- "gap"
		}
	}()
	for _, want := range []string{"gap", "current"} {
		if got := <-calls; got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
	for v := range slow.Views(t.Context()) {
		if v.Err == nil {
			break
		}
	}
}
