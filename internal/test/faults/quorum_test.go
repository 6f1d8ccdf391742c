//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// Case 11: three of five are killed. The other two say at once, everywhere, that the
// quorum is lost, and which members are.
func TestCase11LostQuorumIsVisible(t *testing.T) {
	ms := newMembers(t, 5, 5, nil)
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	killed := time.Now()
	ms.kill(2, 3, 4)
	_, at := ms.running[0].Wait(t, "no quorum:")
	for _, i := range []int{0, 1} {
		text, _ := ms.running[i].Wait(t, "no quorum:")
		if !strings.Contains(text, "2 of 5 reachable, 3 needed") {
			t.Error(text)
		}
		if !slices.ContainsFunc(ms.running[i].All(), func(line string) bool {
			return strings.Contains(line, "level=WARN") && strings.Contains(line, "no quorum: 2 of 5, 3 needed")
		}) {
			t.Errorf("m%d has not logged it", i)
		}
	}
	i, err := pleach.Inspect(t.Context(), pleach.Config{Group: "faults"}, ms.configs[0].Listen)
	if err != nil {
		t.Fatal(err)
	}
	var lost *pleach.QuorumError
	if !errors.As(i.View.Err, &lost) || !slices.Equal(lost.Unreachable, []int{2, 3, 4}) {
		t.Errorf("Inspect: %v", i.View.Err)
	}
	figures(t, map[string]any{"case": 11, "members": 5, "killed": 3, "told_ms": at.Sub(killed).Milliseconds()})
}

// Case 11: an operator forces a view. It is refused as long as the group has its
// quorum, and by members that are not to go on.
func TestForceView(t *testing.T) {
	ms := newMembers(t, 5, 5, nil)
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := pleach.Config{Group: "faults"}
	if _, err := pleach.ForceView(ctx, c, ms.configs[0].Listen); !errors.Is(err, pleach.ErrRefused) {
		t.Errorf("with a quorum: %v", err)
	}
	ms.kill(0, 1, 2)
	ms.running[3].Wait(t, "no quorum:")
	ms.running[4].Wait(t, "no quorum:")
	for _, members := range [][]string{{"m3", "m0"}, {"m3", "m9"}} { // dead, unknown
		if _, err := pleach.ForceView(ctx, c, ms.configs[3].Listen, members...); err == nil {
			t.Errorf("%v may go on", members)
		}
	}
	began := time.Now()
	v, err := pleach.ForceView(ctx, c, ms.configs[3].Listen)
	took := time.Since(began)
	if err != nil || !slices.Equal(ids(v), []string{"m3", "m4"}) || v.Err != nil {
		t.Fatalf("%+v, %v", v, err)
	}
	ms.await([]int{3, 4}, []int{3, 4})
	prefix := fmt.Sprintf("message %d m", v.Number)
	ms.running[3].Wait(t, prefix+"4")
	ms.running[4].Wait(t, prefix+"3")
	ms.start(0, 1, 2) // they join again, by the same command
	ms.await(ms.all(), ms.all())
	figures(t, map[string]any{"case": 11, "members": 5, "killed": 3, "forced_ms": took.Milliseconds()})
}

// Case 11: three of five are killed and started again, with their directories. The group
// goes on by itself, with all five. So it does if all five are.
func TestCase11RestartedMajority(t *testing.T) {
	ms := newMembers(t, 5, 5, func(_ int, c *memberConfig) { c.DataDir = t.TempDir() })
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	ms.kill(2, 3, 4)
	ms.running[0].Wait(t, "no quorum:")
	ms.start(2, 3, 4)
	view, some := ms.await(ms.all(), ms.all())
	if strings.HasPrefix(view, "1 ") {
		t.Errorf("view %s", view)
	}
	ms.kill(ms.all()...)
	ms.start(ms.all()...)
	next, all := ms.await(ms.all(), ms.all())
	if strings.HasPrefix(next, "1 ") {
		t.Errorf("they have begun anew: %s", next)
	}
	// A majority is enough, whichever members it is.
	ms.kill(ms.all()...)
	ms.start(4, 2, 3)
	_, majority := ms.await([]int{2, 3, 4}, []int{2, 3, 4})
	number, _, _ := strings.Cut(next, " ")
	ms.running[2].Wait(t, "message ") // it works
	figures(t, map[string]any{
		"case": 11, "members": 5, "restarted_3_ms": some.Milliseconds(), "restarted_5_ms": all.Milliseconds(),
		"majority_of_restarted_ms": majority.Milliseconds(), "view": number,
	})
}

// A host is cut off, and all members that its process knows are replaced by others
// meanwhile. No one of them can tell it so. It asks the seeds that it has joined by, and
// ends.
func TestCase11MembersReplacedWhileCutOff(t *testing.T) {
	ms := newMembers(t, 4, 4, func(i int, c *memberConfig) { c.Expect, c.Create = 0, i == 0 })
	ms.onNetwork()
	ms.start(0)
	ms.await([]int{0}, []int{0})
	ms.start(1)
	ms.await([]int{0, 1}, []int{0, 1})
	ms.network.Cut(1)
	ms.await([]int{0}, []int{0})
	ms.start(2, 3)
	ms.await([]int{0, 2, 3}, []int{0, 2, 3})
	ms.kill(0)
	ms.await([]int{2, 3}, []int{2, 3})
	ms.running[1].Wait(t, "no quorum:")
	ms.network.Heal(1)
	healed := time.Now()
	text, at := ms.running[1].Wait(t, "over ")
	if !strings.Contains(text, "removed") {
		t.Error(text)
	}
	figures(t, map[string]any{"case": 11, "members": 4, "replaced": 1, "told_ms": at.Sub(healed).Milliseconds()})
}
