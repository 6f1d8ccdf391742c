package pleach_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// More than half of a group does not answer for longer than a change of the view has
// patience: two of five are stopped, and one is killed. Once the two go on, so does the
// group, and all four that live are in its view.
func TestGroupGoesOnWhenStoppedMembersDo(t *testing.T) { soak(t, goesOnWhenStoppedMembersDo) }

func goesOnWhenStoppedMembersDo(t *testing.T, seed uint64) report {
	if testing.Short() {
		t.Skip("takes 10 seconds")
	}
	const (
		size   = 5
		killed = 4
		soon   = 5 * time.Second
	)
	// Longer than membership.Config.Patience, and to any point of an attempt.
	stopped := 8*time.Second + time.Duration(rand.New(rand.NewPCG(seed, 6)).Int64N(int64(2*time.Second)))
	addresses := freeAddresses(t, size)
	rs := startResidents(t, size, func(int) *exec.Cmd { return exec.Command(os.Args[0]) }, func(who int) residentConfig {
		return residentConfig{Addresses: addresses, Rank: who, Pace: 50 * time.Millisecond}
	})
	rs.tell("join")
	all := []int{0, 1, 2, 3, killed}
	first, _ := rs.awaitMembers(20*time.Second, "the first view", all, all)
	rs.awaitTalk("the first view", all, first)

	rs.signal(1, syscall.SIGSTOP)
	rs.signal(2, syscall.SIGSTOP)
	rs.signal(killed, syscall.SIGKILL)
	time.Sleep(stopped)
	rs.signal(1, syscall.SIGCONT)
	rs.signal(2, syscall.SIGCONT)
	survivors := slices.Delete(slices.Clone(all), killed, killed+1)
	view, took := rs.awaitMembers(soon, "after the two go on", survivors, survivors)
	rs.awaitTalk("after the two go on", survivors, view)
	t.Logf("view %d came %v after the two, stopped for %v, went on", view, took.Round(time.Millisecond), stopped.Round(time.Millisecond))
	return report{delivered: checkHistory(t, rs), catchUp: took}
}
