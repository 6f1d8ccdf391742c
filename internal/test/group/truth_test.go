package group_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// awaitGone waits until a status tells of a member that it is suspected, or gone and why.
func awaitGone(t *testing.T, g *pleach.Group, rank int) (state, cause string, at time.Time) {
	t.Helper()
	s := pleach.Status{}
	testutil.Eventually(t, fmt.Sprintf("rank %d tells of rank %d", g.Rank(), rank), func() bool {
		s = g.Status()
		for _, x := range s.Suspects {
			if x.Rank == rank {
				state, cause, at = "suspected", x.Cause, s.Time
				return true
			}
		}
		for _, v := range s.History {
			for _, c := range v.Changes {
				if c.Rank == rank && c.Gone() {
					state, cause, at = "gone", c.String(), v.Time
					return true
				}
			}
		}
		return false
	}, func() any { return s })
	return state, cause, at
}

// One process of a large group is stopped and another one killed. The coordinator, and
// members that have no connection to them, tell so in their status, with the cause.
func TestStatusTellsOfStoppedAndKilled(t *testing.T) {
	size := 50
	if testutil.RaceEnabled {
		size = 16
	}
	config := pleach.Config{Group: "residents", Listen: "127.0.0.1:0"}
	first := member(t)(pleach.Create(t.Context(), config))
	seed := first.Self().Address
	second := member(t)(pleach.Join(t.Context(), config, seed))
	rs := startResidents(t, size-2,
		func(int) *exec.Cmd { return exec.Command(os.Args[0]) },
		func(int) residentConfig { return residentConfig{Seeds: []string{seed}, Listen: "127.0.0.1:0"} })
	rs.tell("join")
	awaitView(t, first, "all", ofSize(size))
	for i, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		victim := rs.all[size/3*(i+1)]
		rs.await(time.Minute, "begin", []int{victim.who}, func(o *observed) string {
			if o.rank() < 0 {
				return "has not begun"
			}
			return ""
		})
		rank, since := victim.rank(), time.Now()
		rs.signal(victim.who, signal)
		for _, g := range []*pleach.Group{first, second} {
			state, cause, at := awaitGone(t, g, rank)
			t.Logf("%v: rank %d says after %v: %s: %s", signal, g.Rank(), at.Sub(since).Round(time.Millisecond), state, cause)
		}
	}
	// A view without a member has one cause, which all members tell.
	awaitView(t, first, "without two", func(v pleach.View) bool { return v.Size() <= size-2 })
	awaitView(t, second, "without two", func(v pleach.View) bool { return v.Size() <= size-2 })
	told, same := causes(first), 0
	for number, cause := range causes(second) {
		if known, ok := told[number]; ok && known == cause {
			same++
		} else if ok {
			t.Errorf("view %d: rank 0 says %s, and rank 1 %s", number, known, cause)
		}
	}
	if same < 2 {
		t.Errorf("the members have %d views in common", same)
	}
}

// causes returns why each view of a history came, but for the first one.
func causes(g *pleach.Group) map[uint64]string {
	causes := make(map[uint64]string)
	for _, v := range g.Status().History[1:] {
		for i := range v.Changes {
			v.Changes[i].Detail = "" // this member's own
		}
		causes[v.Number] = fmt.Sprint(v.Changes)
	}
	return causes
}

// rank is a resident's first, or -1 if it has not begun.
func (o *observed) rank() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.ranks) == 0 {
		return -1
	}
	return o.ranks[0]
}
