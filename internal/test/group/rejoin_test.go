package group_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// outpaced returns two members, of which the second has left because its program receives
// nothing, and how many messages the first has sent until then.
func outpaced(t *testing.T) (sender, slow *pleach.Group, sent int) {
	t.Helper()
	return outpacedBeside(t, func(*pleach.Group) {})
}

// outpacedBeside is outpaced, and starts something beside the second member before that.
func outpacedBeside(t *testing.T, beside func(slow *pleach.Group)) (sender, slow *pleach.Group, sent int) {
	t.Helper()
	return outpacedAs(t, pleach.Config{}, beside)
}

// outpacedAs is outpacedBeside with settings of the second member.
func outpacedAs(t *testing.T, c pleach.Config, beside func(slow *pleach.Group)) (sender, slow *pleach.Group, sent int) {
	t.Helper()
	limits := pleach.Limits{InboxBytes: 64 << 10, SlowTimeout: 200 * time.Millisecond}
	sender, err := pleach.Create(t.Context(), pleach.Config{ID: "sender", Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.Abort() })
	c.ID, c.Limits, c.Recovery.Rejoin = "slow", limits, true
	slow, err = pleach.Join(t.Context(), c, sender.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slow.Abort() })
	beside(slow)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for sender.Size() == 2 {
		if err := sender.Broadcast(ctx, append(make([]byte, 1<<10), strconv.Itoa(sent)...)); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	return sender, slow, sent
}

// A process that was too slow comes back when its program receives: first what was left, then
// the notice, then what is new.
func TestSlowProgramComesBackWhenItReceives(t *testing.T) {
	sender, slow, sent := outpaced(t)
	for v := range slow.Views(t.Context()) {
		if v.Err != nil {
			if !errors.Is(v.Err, pleach.ErrTooSlow) {
				t.Errorf("the view has %v", v.Err)
			}
			break
		}
	}
	if err := slow.Broadcast(t.Context(), nil); !errors.Is(err, pleach.ErrTooSlow) {
		t.Errorf("a broadcast between two memberships: %v", err)
	}
	time.Sleep(300 * time.Millisecond)
	if sender.Size() != 1 {
		t.Error("the process has come back before its program receives")
	}
	go func() {
		awaitView(t, sender, "both", ofSize(2))
		_ = sender.Broadcast(t.Context(), append(make([]byte, 1<<10), "new"...))
	}()
	next, told := 0, false
	for m, err := range slow.Messages(t.Context()) {
		if gap, ok := errors.AsType[*pleach.GapError](err); ok {
			told = errors.Is(err, pleach.ErrTooSlow) && gap.From < gap.To
			continue
		}
		if text := string(m.Data[1<<10:]); text == "new" {
			break
		} else if told || text != strconv.Itoa(next) {
			t.Fatalf("message %s instead of %d; told of the gap: %t", text, next, told)
		}
		next++
	}
	if !told || next > sent || slow.Err() != nil {
		t.Errorf("told of the gap: %t; %d of %d messages; %v", told, next, sent, slow.Err())
	}
}

// failures counts log lines of attempts to join again that have failed.
type failures struct {
	slog.Handler
	n atomic.Int64
}

func (f *failures) Enabled(context.Context, slog.Level) bool { return true }
func (f *failures) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f *failures) WithGroup(string) slog.Handler            { return f }

func (f *failures) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "cannot join again" {
		f.n.Add(1)
	}
	return nil
}

// A process whose data directory cannot be used when it is to come back, as on a disk that is full,
// tries again until it can.
func TestComesBackWhenItsDataDirDoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	failed := &failures{Handler: slog.DiscardHandler}
	sender, slow, _ := outpacedAs(t, pleach.Config{Recovery: pleach.Recovery{DataDir: dir}, Logger: slog.New(failed)},
		func(*pleach.Group) {
			if err := errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		})
	go func() {
		for range slow.Messages(t.Context()) {
		}
	}()
	testutil.Eventually(t, "two failures", func() bool { return failed.n.Load() >= 2 || slow.Err() != nil })
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)); err != nil {
		t.Fatal(err)
	}
	if err := slow.Err(); err != nil {
		t.Fatal(err)
	}
	awaitView(t, sender, "both", ofSize(2))
}

// A program that leaves between two memberships stays out.
func TestLeaveBetweenMemberships(t *testing.T) {
	_, slow, _ := outpaced(t)
	for v := range slow.Views(t.Context()) {
		if v.Err != nil {
			break
		}
	}
	if err := slow.Leave(t.Context()); err != nil || !errors.Is(slow.Err(), pleach.ErrLeft) {
		t.Errorf("left with %v, and the group has ended with %v", err, slow.Err())
	}
	for range slow.Messages(t.Context()) { // what was left
	}
}

// A group that is closed between two memberships has ended.
func TestCloseBetweenMemberships(t *testing.T) {
	_, slow, _ := outpaced(t)
	if err := slow.Close(); err != nil || slow.Err() == nil {
		t.Errorf("closed with %v, and the group has ended with %v", err, slow.Err())
	}
}

// Everyone who watches views learns that a membership has ended, also a goroutine that begins
// to watch at that very moment.
func TestEndOfMembershipReachesAllWhoWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watching sync.WaitGroup
	_, slow, _ := outpacedBeside(t, func(slow *pleach.Group) {
		for range 50 {
			watching.Go(func() {
				for ctx.Err() == nil { // begins anew again and again
					for v := range slow.Views(ctx) {
						if v.Err != nil {
							return
						}
						if rand.IntN(2) == 0 {
							break
						}
					}
				}
			})
		}
	})
	all := make(chan struct{})
	go func() {
		watching.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(10 * time.Second):
		t.Errorf("the membership has ended with %v, and a goroutine that watches views waits", slow.View().Err)
		cancel()
		<-all
	}
}
