package pleach_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// A process that hangs is noticed without any further detector, and holds up no other
// one: neither its broadcasts, nor for long the view without another that has died.
func TestHungProcessHoldsUpNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 seconds")
	}
	const (
		size          = 10
		hung, killed  = 5, 7
		runs          = 3
		mostBlocked   = 100 * time.Millisecond
		mostUntilView = 2500 * time.Millisecond
	)
	var blocked, views []time.Duration
	for range runs {
		rs, all := talking(t, size)
		others := slices.DeleteFunc(slices.Clone(all), func(who int) bool { return who == hung || who == killed })
		rs.longest(others)
		rs.signal(hung, syscall.SIGSTOP)
		rs.signal(killed, syscall.SIGKILL)
		_, took := rs.awaitMembers(20*time.Second, "without the two", others, others)
		block := rs.longest(others)
		blocked, views = append(blocked, block), append(views, took)
		t.Logf(`{"case":5,"blocked_ms_max":%d,"view_ms":%d}`, block.Milliseconds(), took.Milliseconds())
		rs.end()
	}
	if !quietMachine() {
		return
	}
	slices.Sort(blocked)
	slices.Sort(views)
	if p50 := blocked[runs/2]; p50 > mostBlocked {
		t.Errorf("broadcasts blocked for up to %v", p50)
	}
	if p50 := views[runs/2]; p50 > mostUntilView {
		t.Errorf("the view without the two came after %v", p50)
	}
}

// The coordinator hangs in the midst of a change that another hung process holds up.
func TestHungCoordinatorIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 seconds")
	}
	const most = 2500 * time.Millisecond
	rs, all := talking(t, 7)
	others := slices.DeleteFunc(slices.Clone(all), func(who int) bool { return who == 0 || who >= 5 })
	rs.longest(others)
	rs.signal(5, syscall.SIGSTOP)
	rs.signal(6, syscall.SIGKILL)
	time.Sleep(20 * time.Millisecond) // the first attempt has frozen all
	rs.signal(0, syscall.SIGSTOP)
	_, took := rs.awaitMembers(20*time.Second, "without the three", others, others)
	blocked := rs.longest(others)
	t.Logf(`{"case":24,"blocked_ms_max":%d,"view_ms":%d}`, blocked.Milliseconds(), took.Milliseconds())
	if quietMachine() && (blocked > most || took > most) {
		t.Errorf("blocked for %v, and a view after %v, want at most %v", blocked, took, most)
	}
}

// quietMachine reports whether nothing else runs on this machine, as PLEACH_FULL=1 says: only
// then times are compared with bounds.
func quietMachine() bool { return os.Getenv("PLEACH_FULL") != "" }

// talking starts residents that broadcast, and waits until all have heard each other.
func talking(t *testing.T, size int) (rs *residents, all []int) {
	t.Helper()
	addresses := freeAddresses(t, size)
	rs = startResidents(t, size, func(int) *exec.Cmd { return exec.Command(os.Args[0]) }, func(who int) residentConfig {
		return residentConfig{Addresses: addresses, Rank: who, Pace: 20 * time.Millisecond}
	})
	rs.tell("join")
	for who := range size {
		all = append(all, who)
	}
	rs.awaitTalk("to meet", all, 0)
	time.Sleep(time.Second) // heartbeats have been exchanged
	return rs, all
}

// longest is the longest that a broadcast of some residents has blocked since the last
// call.
func (rs *residents) longest(some []int) (longest time.Duration) {
	for _, who := range some {
		longest = max(longest, rs.all[who].blocked())
	}
	return longest
}

// end kills all residents.
func (rs *residents) end() {
	for _, o := range rs.all {
		_ = o.cmd.Process.Kill()
		<-o.ended
	}
}

// Members that get to run only now and then suspect themselves first: a busy host
// removes no member. With short timeouts, members that do not doubt themselves would.
func TestBusyHostRemovesNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 30 seconds")
	}
	for name, c := range map[string]struct {
		loops             int
		interval, timeout time.Duration
		watched           time.Duration
	}{
		"defaults":       {1, 0, 0, 20 * time.Second},
		"short timeouts": {8, 20 * time.Millisecond, 100 * time.Millisecond, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if c.timeout > 0 && !quietMachine() {
				t.Skip("timeouts of a few scheduler slices hold only where nothing else runs: PLEACH_FULL=1")
			}
			const size = 20
			groups := joinWhole(t, size, func(config *pleach.Config) {
				config.HeartbeatInterval, config.SuspicionTimeout = c.interval, c.timeout
			})
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			for range c.loops {
				go busy(ctx)
			}
			time.Sleep(c.watched)
			for _, g := range groups {
				if v := g.View(); v.Number != 1 || len(v.Members) != size {
					t.Errorf("rank %d is in view %d of %d members, %v", g.Rank(), v.Number, len(v.Members), g.Err())
				}
			}
		})
	}
}

// busy uses a processor until ctx ends.
func busy(ctx context.Context) {
	for n := 0; ctx.Err() == nil; {
		for range 1 << 20 {
			n += n>>1 + 1
		}
	}
}
