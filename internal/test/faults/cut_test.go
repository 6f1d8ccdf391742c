//go:build unix

package faults

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Case 42: a group is cut in two. Each member of the minority knows that it has no quorum
// before a member of the majority has its next view, also one whose neighbors are all on
// its side.
func TestCase42MinorityKnowsFirst(t *testing.T) {
	for _, c := range []struct {
		size     int
		minority []int
	}{{5, []int{0, 1}}, {7, []int{0, 1, 2}}, {5, []int{2, 4}}} {
		t.Run(fmt.Sprint(c.minority, " of ", c.size), func(t *testing.T) {
			ms := newMembers(t, c.size, c.size, nil)
			ms.onNetwork()
			ms.start(ms.all()...)
			ms.await(ms.all(), ms.all())
			time.Sleep(time.Second) // all have exchanged heartbeats
			majority := ranksBut(c.size, c.minority...)
			cut := time.Now()
			ms.network.Partition(c.minority...)
			ms.await(majority, majority)
			var view time.Time
			for _, i := range majority {
				if at := ms.lastViewAt(i); view.IsZero() || at.Before(view) {
					view = at
				}
			}
			var told []int64
			for _, i := range c.minority {
				_, at := ms.running[i].Wait(t, "no quorum:")
				told = append(told, at.Sub(cut).Milliseconds())
				if !at.Before(view) {
					t.Errorf("m%d is told %v after the others have their view", i, at.Sub(view))
				}
			}
			figures(t, map[string]any{
				"case": 42, "members": c.size, "minority": c.minority, "told_ms": told,
				"view_ms": view.Sub(cut).Milliseconds(),
			})
		})
	}
}

// lastViewAt is when a process printed its last view.
func (ms *members) lastViewAt(i int) time.Time {
	view, _ := ms.lastView(i)
	_, at := ms.running[i].Wait(ms.t, "view "+view)
	return at
}

// Case 42: one member after the other is stopped, on a host with more to do than it has
// processors. The others ask each other, and none takes itself for cut off.
func TestCase42OverloadIsNoCut(t *testing.T) {
	const size = 9
	for range 2 * runtime.NumCPU() {
		go burn(t.Context())
	}
	ts := talkingGroup(t, size)
	left := ranksBut(size)
	for _, stopped := range []int{4, 0} {
		ts.signal(syscall.SIGSTOP, stopped)
		left = slices.DeleteFunc(left, func(r int) bool { return r == stopped })
		ts.awaitView(left)
	}
	lost := 0
	for _, r := range left {
		p := ts.all[r]
		p.mu.Lock()
		for _, line := range p.log {
			if strings.Contains(line, "no quorum") {
				t.Errorf("rank %d: %s", r, line)
				lost++
			}
		}
		p.mu.Unlock()
	}
	figures(t, map[string]any{"case": 42, "variant": "overload", "members": size, "lost": lost})
}
