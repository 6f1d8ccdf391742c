package group_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Views between hosts, one member on each: hosts that fall silent, networks that
// fall in two, herds that join, and members that are only slow.

// hostsSize is how many hosts there are, how many of them are parted from the
// rest, and how long a member may be silent.
type hostsSize struct {
	hosts, minority, herd int
	grace                 time.Duration
}

func sizeOfHosts() hostsSize {
	if testutil.RaceEnabled {
		return hostsSize{6, 2, 12, time.Second} // the members run with the race detector too
	}
	return hostsSize{16, 7, 64, 500 * time.Millisecond}
}

// probe is how often neighbors show that they live: a member that does not get to run for as
// long may miss one.
func (s *hostsSize) probe() time.Duration { return s.grace / 4 }

// detection bounds the time until a silent host is out of the view.
const detection = 15 * time.Second

// reunion bounds the time until all are in one view again after a heal.
const reunion = 30 * time.Second

// everywhere starts a group as a whole, with one resident per host, and returns
// when all have met.
func everywhere(t *testing.T, network *netns.Net, size hostsSize) (rs *residents, everybody []int) {
	t.Helper()
	addresses := make([]string, size.hosts)
	for host := range addresses {
		addresses[host] = network.Address(host) + ":7000"
		everybody = append(everybody, host)
	}
	rs = startResidents(t, size.hosts, func(who int) *exec.Cmd { return network.Command(who, os.Args[0]) },
		func(who int) residentConfig {
			return residentConfig{Addresses: addresses, Rank: who, SuspicionTimeout: size.grace, Pace: 50 * time.Millisecond}
		})
	rs.tell("join")
	rs.awaitTalk("to meet", everybody, 0)
	time.Sleep(3 * time.Second)
	for _, o := range rs.all {
		o.latest() // the start does not count
	}
	return rs, everybody
}

// except returns the others.
func except(everybody []int, some ...int) []int {
	return slices.DeleteFunc(slices.Clone(everybody), func(who int) bool { return slices.Contains(some, who) })
}

// checkReturned checks that a resident was told that the others had gone on, and
// got its old rank again.
func checkReturned(t *testing.T, o *observed) {
	t.Helper()
	if len(o.over) == 0 {
		t.Errorf("resident %d was not told that the others had gone on", o.who)
	}
	for _, text := range o.over {
		if !strings.Contains(text, pleach.ErrEvicted.Error()) {
			t.Errorf("resident %d: over %q, want it evicted", o.who, text)
		}
	}
	for _, rank := range o.ranks {
		if rank != o.who {
			t.Errorf("resident %d has had ranks %v", o.who, o.ranks)
		}
	}
}

// noQuorum looks for a broadcast that failed because too few are reachable, and
// returns an error if it does not say how many are and how many it takes: half of
// all with the lowest rank, and otherwise one more.
func noQuorum(o *observed, all, parted int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	few := errors.New("no broadcast has failed for want of a quorum")
	for _, text := range o.failed {
		_, numbers, ok := strings.Cut(text, pleach.ErrNoQuorum.Error()+" in view ")
		if !ok {
			continue
		}
		var reachable, members, view, need int
		if _, err := fmt.Sscanf(numbers, "%d: %d of %d reachable, %d needed", &view, &reachable, &members,
			&need); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		if need != (all+1)/2 && need != all/2+1 || reachable > all/2 || members != all {
			return fmt.Errorf("%q: that is wrong for %d to %d of %d", text, parted, all/2, all)
		}
		if reachable >= parted {
			return nil
		}
		// On a busy machine a member may find the others of its side later.
		few = fmt.Errorf("%q: there are %d on its side", text, parted)
	}
	return few
}

// awaitNoQuorum waits until some residents have said that they are too few.
func (rs *residents) awaitNoQuorum(some []int) time.Duration {
	rs.t.Helper()
	return rs.await(40*time.Second, "no quorum", some, func(o *observed) string {
		if err := noQuorum(o, len(rs.all), len(some)); err != nil {
			return err.Error()
		}
		return ""
	})
}

// A host falls silent: the others go on without it. It stops, learns after the
// heal that it was evicted, and comes back to its rank.
func TestSilentHost(t *testing.T) {
	testutil.Soak(t, func(t *testing.T, seed uint64) testutil.SoakReport {
		size := sizeOfHosts()
		network := netns.New(t, size.hosts)
		rs, everybody := everywhere(t, network, size)
		lone := rand.New(rand.NewPCG(seed, 0)).IntN(size.hosts)
		others := except(everybody, lone)

		network.Cut(lone)
		view, gone := rs.awaitMembers(detection, "without the silent host", others, others)
		rs.awaitTalk("without the silent host", others, view)
		stopped := rs.awaitNoQuorum([]int{lone})
		network.Heal(lone)
		view, back := rs.awaitMembers(reunion, "with the host that is back", everybody, everybody)
		rs.awaitTalk("with the host that is back", everybody, view)
		t.Logf("host %d: out of the view after %v, stopped %v later, back %v after the heal, in view %d", lone, gone, stopped,
			back, view)

		rs.hush(everybody)
		checkReturned(t, rs.all[lone])
		checkStayed(t, rs, others, size.probe())
		return testutil.SoakReport{Delivered: checkHistory(t, rs)}
	})
}

// A network falls in two: the majority goes on, the minority stops and says why,
// and comes back after the heal. What the minority has sent meanwhile reaches
// nobody of the majority.
func TestHostsParted(t *testing.T) {
	testutil.Soak(t, func(t *testing.T, seed uint64) testutil.SoakReport {
		size := sizeOfHosts()
		network := netns.New(t, size.hosts)
		rs, everybody := everywhere(t, network, size)
		minority := rand.New(rand.NewPCG(seed, 0)).Perm(size.hosts)[:size.minority]
		majority := except(everybody, minority...)

		network.Partition(minority...)
		parted := time.Now()
		view, gone := rs.awaitMembers(detection, "the majority", majority, majority)
		rs.awaitTalk("the majority", majority, view)
		stopped := rs.awaitNoQuorum(minority)
		healed := time.Now() // or a moment later: hosts whose links are up again may be quick
		network.HealAll()
		whole, back := rs.awaitMembers(reunion, "after the heal", everybody, everybody)
		rs.awaitTalk("after the heal", everybody, whole)
		t.Logf("the majority is in view %d after %v, the minority %v has stopped %v later, all are in view %d %v after the heal",
			view, gone, minority, stopped, whole, back)

		rs.hush(everybody)
		for _, who := range minority {
			checkReturned(t, rs.all[who])
		}
		checkStayed(t, rs, majority, size.probe())
		for _, who := range majority {
			checkNothingFrom(t, rs.all[who], minority, parted, healed, view)
		}
		return testutil.SoakReport{Delivered: checkHistory(t, rs)}
	})
}

// checkNothingFrom checks that nothing has come that some roots sent while they
// were parted, or in a view up to the one that went on without them.
func checkNothingFrom(t *testing.T, o *observed, roots []int, parted, healed time.Time, view uint64) {
	t.Helper()
	for _, a := range o.have {
		sent := time.Unix(0, a.sent)
		if slices.Contains(roots, a.root) && sent.After(parted) && (sent.Before(healed) || a.view <= view) {
			t.Errorf("resident %d: message %d came in view %d, though its root %d was parted when it was sent", o.who, a.number,
				a.view, a.root)
		}
	}
}

// A herd joins a founder at once: there is one view of all, after few others.
func TestHerdFromHosts(t *testing.T) {
	size := sizeOfHosts()
	network := netns.New(t, size.hosts)
	founder := network.Address(0) + ":7000"
	rs := startResidents(t, 1+size.herd, func(who int) *exec.Cmd { return network.Command(who%size.hosts, os.Args[0]) },
		func(who int) residentConfig {
			if who == 0 {
				return residentConfig{Create: true, Listen: founder}
			}
			return residentConfig{Seeds: []string{founder}}
		})
	all := make([]int, len(rs.all))
	for who := range all {
		all[who] = who
	}
	rs.tell("join")
	view, took := rs.awaitMembers(20*time.Second, "the herd", all, all)
	t.Logf("%d processes have joined within %v: view %d", size.herd, took, view)
	if view > 10 {
		t.Errorf("%d views for a herd of %d", view, size.herd)
	}
	checkHistory(t, rs)
}

// Who is slow is not dead. A member that is stopped for less than its grace stays
// a member. One that is stopped for longer may be evicted, but costs nobody else
// its place when it goes on with clocks that have run out.
func TestSlowIsNotDead(t *testing.T) {
	testutil.Soak(t, func(t *testing.T, seed uint64) testutil.SoakReport {
		size := sizeOfHosts()
		network := netns.New(t, size.hosts)
		rs, everybody := everywhere(t, network, size)
		rng := rand.New(rand.NewPCG(seed, 0))
		slow := rng.IntN(size.hosts)
		others := except(everybody, slow)

		rs.signal(slow, syscall.SIGSTOP)
		time.Sleep(size.grace * 3 / 5)
		rs.signal(slow, syscall.SIGCONT)
		time.Sleep(4 * size.grace)
		rs.awaitMembers(reunion, "all after a short stop", everybody, everybody)
		stayers(t, rs, everybody, size.grace*3/4)

		between := size.grace + time.Duration(rng.Int64N(int64(5*size.grace)))
		for _, stop := range []time.Duration{between, 8 * size.grace} {
			rs.signal(slow, syscall.SIGSTOP)
			time.Sleep(stop)
			rs.signal(slow, syscall.SIGCONT)
			time.Sleep(2 * size.grace)
			view, took := rs.awaitMembers(reunion, "all after a long stop", everybody, everybody)
			rs.awaitTalk("all after a long stop", everybody, view)
			t.Logf("host %d, stopped for %v: all are in view %d, %v later", slow, stop, view, took)
		}
		rs.hush(everybody)
		checkStayed(t, rs, others, size.probe())
		return testutil.SoakReport{Delivered: checkHistory(t, rs)}
	})
}

// While a member is slow but not suspected, and a change of the view is pending, roots
// are frozen once (ADR 15): not even those that the coordinator reaches through the slow
// member stay frozen.
func TestStoppedRelayFreezesNobodyForGood(t *testing.T) {
	size := sizeOfHosts()
	const slow = 1 // it has children in the tree over any number of members
	dead := size.hosts - 1
	addresses := testutil.FreeAddresses(t, size.hosts)
	rs := startResidents(t, size.hosts, func(int) *exec.Cmd { return exec.Command(os.Args[0]) },
		func(who int) residentConfig {
			return residentConfig{Addresses: addresses, Rank: who, Pace: 20 * time.Millisecond}
		})
	everybody := make([]int, size.hosts)
	for who := range everybody {
		everybody[who] = who
	}
	rs.tell("join")
	rs.awaitTalk("to meet", everybody, 0)
	rs.signal(slow, syscall.SIGSTOP)
	rs.signal(dead, syscall.SIGKILL)
	time.Sleep(time.Second) // the first attempt has frozen all
	running := except(everybody, slow, dead)
	before := make([]int, size.hosts)
	for who, o := range rs.all {
		before[who] = o.broadcasts()
	}
	rs.await(5*time.Second, "broadcasts while one is stopped", running, func(o *observed) string {
		if n := o.broadcasts() - before[o.who]; n < 5 {
			return fmt.Sprintf("has sent %d messages", n)
		}
		return ""
	})
	rs.signal(slow, syscall.SIGCONT)
	rs.awaitMembers(detection, "without the dead one", except(everybody, dead), except(everybody, dead))
}
