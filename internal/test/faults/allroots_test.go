package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// seconds is how long a case puts load on a group: PLEACH_SECONDS, or 1.
func seconds() time.Duration {
	return time.Duration(testutil.Seconds.OrFloat(1) * float64(time.Second))
}

// figures prints the figures of a case.
func figures(t *testing.T, f map[string]any) {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(string(b))
}

// start starts a group over TCP on loopback.
func start(t *testing.T, size int, change func(*pleach.Config)) []*pleach.Group {
	t.Helper()
	addresses := testutil.FreeAddresses(t, size)
	groups := make([]*pleach.Group, size)
	for r := range groups {
		c := pleach.Config{Group: "faults", Addresses: addresses, Rank: r}
		if change != nil {
			change(&c)
		}
		g, err := pleach.Start(t.Context(), c)
		if errors.Is(err, syscall.EADDRINUSE) { // another test was given the port meanwhile
			for _, g := range groups[:r] {
				_ = g.Abort()
			}
			return start(t, size, change)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		groups[r] = g
	}
	return groups
}

// load is the result of some roots broadcasting at full rate.
type load struct {
	sent, received, lost int64
	pause                time.Duration // the longest between two messages of one root at one member
	took                 time.Duration
}

// broadcastAll has the first roots members broadcast messages of a size as fast as they
// may, for a while, and waits until every member has everything.
func broadcastAll(t *testing.T, groups []*pleach.Group, roots, size int, load time.Duration) load {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), load+60*time.Second)
	defer cancel()
	var sent, received, lost, pause atomic.Int64
	var sending, receiving sync.WaitGroup
	sentBy := make([]atomic.Int64, len(groups))
	done := make(chan struct{})
	for r, g := range groups {
		if roots == 1 && r == 0 {
			continue // it is sent nothing
		}
		receiving.Go(func() {
			last := make([]time.Time, g.View().Slots)
			got := make([]int64, g.View().Slots)
			for m, err := range g.Messages(ctx) {
				if e, ok := errors.AsType[*pleach.LostError](err); ok {
					lost.Add(int64(e.Count))
					continue
				}
				now := time.Now()
				if previous := last[m.From]; !previous.IsZero() {
					for p := int64(now.Sub(previous)); p > pause.Load(); {
						pause.Store(p)
					}
				}
				last[m.From] = now
				got[m.From]++
				received.Add(1)
				if finished(done, g.Rank(), roots, got, sentBy) {
					return
				}
			}
		})
	}
	began := time.Now()
	for r, g := range groups[:roots] {
		sending.Go(func() {
			payload := make([]byte, size)
			for time.Since(began) < load {
				if err := g.Broadcast(ctx, payload); err != nil {
					t.Errorf("rank %d: %v", r, err)
					return
				}
				sentBy[r].Add(1)
				sent.Add(1)
			}
		})
	}
	sending.Wait()
	took := time.Since(began)
	close(done)
	// One more message of each root ends the receivers.
	for r, g := range groups[:roots] {
		sentBy[r].Add(1)
		if err := g.Broadcast(ctx, []byte("end")); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	receiving.Wait()
	if ctx.Err() != nil {
		t.Errorf("not all messages arrived: %d of %d", received.Load(), sent.Load()*int64(len(groups)-1))
	}
	return loadOf(sent.Load(), received.Load(), lost.Load(), pause.Load(), took)
}

func loadOf(sent, received, lost, pause int64, took time.Duration) load {
	return load{sent: sent, received: received, lost: lost, pause: time.Duration(pause), took: took}
}

// finished reports whether a member has everything, once all roots are done.
func finished(done <-chan struct{}, self, roots int, got []int64, sent []atomic.Int64) bool {
	select {
	case <-done:
	default:
		return false
	}
	for r := range roots {
		if r != self && got[r] < sent[r].Load() {
			return false
		}
	}
	return true
}

// Case 19: all members are alive and receive, and all broadcast at full rate. Nothing
// is lost, no stream pauses, and together they are about as fast as one root.
func TestCase19AllMembersBroadcast(t *testing.T) {
	sizes := []int{3, 4, 8}
	if testutil.Full.On() {
		sizes = []int{3, 4, 6, 8, 16}
	}
	for _, size := range []int{64, 8 << 10, 64 << 10} {
		for _, members := range sizes {
			t.Run(fmt.Sprintf("members=%d/size=%d", members, size), func(t *testing.T) {
				one := broadcastAll(t, start(t, members, nil), 1, size, seconds())
				all := broadcastAll(t, start(t, members, nil), members, size, seconds())
				ratio := float64(all.sent) / all.took.Seconds() / (float64(one.sent) / one.took.Seconds())
				figures(t, map[string]any{
					"case": 19, "members": members, "size": size, "lost": all.lost + one.lost,
					"pause_ms": all.pause.Milliseconds(), "per_second_one": int(float64(one.sent) / one.took.Seconds()),
					"per_second_all": int(float64(all.sent) / all.took.Seconds()), "of_one": ratio,
				})
				if all.lost+one.lost > 0 {
					t.Errorf("%d messages lost with one root, %d with all", one.lost, all.lost)
				}
			})
		}
	}
}
