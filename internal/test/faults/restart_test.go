//go:build unix

package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// leaveOnTerm leaves the group on SIGTERM.
func leaveOnTerm(g *pleach.Group) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	<-terminated
	_ = g.Leave(context.Background())
	os.Exit(0)
}

// versionedState is a state of which each process has a version on its own disk.
type versionedState struct{ version uint64 }

func (s *versionedState) OfferState() uint64 { return s.version }

func (s *versionedState) Snapshot(w io.Writer) error {
	return binary.Write(w, binary.BigEndian, s.version)
}

func (s *versionedState) Restore(r io.Reader) error {
	err := binary.Read(r, binary.BigEndian, &s.version)
	fmt.Println("restored", s.version)
	return err
}

// withDataDirs describes processes that have data directories.
func withDataDirs(t *testing.T, n int) *members {
	return newMembers(t, n, n, func(_ int, c *memberConfig) { c.DataDir = t.TempDir() })
}

// terminate has processes leave, one after the other.
func (ms *members) terminate(which ...int) {
	for _, i := range which {
		ms.running[i].Terminate()
	}
}

// Case 31: all members are killed and started again, over and over, before they have
// recovered. When they are left alone, the group is back.
func TestCase31CrashesDuringRecovery(t *testing.T) {
	var worst time.Duration
	rng := rand.New(rand.NewPCG(31, 0))
	for _, n := range []int{3, 5} {
		ms := withDataDirs(t, n)
		ms.start(ms.all()...)
		ms.await(ms.all(), ms.all())
		for range 4 {
			for range 6 {
				ms.kill(ms.all()...)
				ms.start(ms.all()...)
				time.Sleep(time.Duration(10+rng.IntN(400)) * time.Millisecond)
			}
			ms.kill(ms.all()...)
			ms.start(ms.all()...)
			view, took := ms.await(ms.all(), ms.all())
			worst = max(worst, took)
			if strings.HasPrefix(view, "1 ") {
				t.Errorf("they have begun anew: %s", view)
			}
		}
		ms.kill(ms.all()...)
	}
	testutil.Took(t, "the group's recovery", worst, 10*time.Second)
	figures(t, map[string]any{"case": 31, "crashes": 56, "worst_ms": worst.Milliseconds()})
}

// Case 31: of five that were killed, two are back, and the others are lost for good. An
// operator lets the two go on, which are no members yet.
func TestCase31ForcedVoters(t *testing.T) {
	ms := withDataDirs(t, 5)
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	ms.kill(ms.all()...)
	ms.start(1, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil { // it is refused before the two have found each other
		if _, err := pleach.ForceView(ctx, pleach.Config{Group: "faults"}, ms.configs[1].Listen); err == nil {
			break
		}
		if view, _ := ms.lastView(1); view != "" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	ms.await([]int{1, 3}, []int{1, 3})
}

// Case 32: all members of a group with a state are killed and started again. The group
// begins with the newest state that a process has elsewhere.
func TestCase32AllHaveLostTheState(t *testing.T) {
	ms := withDataDirs(t, 5)
	versions := []uint64{3, 1, 7, 2, 5}
	for i := range ms.configs {
		ms.configs[i].Version = versions[i]
	}
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	for range 3 {
		ms.kill(ms.all()...)
		ms.start(ms.all()...)
		for i := range ms.configs {
			if i == 2 {
				continue
			}
			// A process that starts later than a majority has begun, as beside a compiler, joins it.
			if version, _ := ms.running[i].Wait(t, "restored "); version == "5" {
				ms.running[2].Wait(t, "restored 5")
			} else if version != "7" {
				t.Errorf("member %d begins with version %s, want 7", i, version)
			}
		}
		ms.await(ms.all(), ms.all())
	}
}

// Case 33: all members are started again at other addresses, with their directories and with
// seeds that are right now.
func TestCase33NewAddresses(t *testing.T) {
	ms := withDataDirs(t, 5)
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	var worst time.Duration
	for range 3 {
		ms.kill(ms.all()...)
		addresses := testutil.FreeAddresses(t, 5)
		for i := range ms.configs {
			ms.configs[i].Listen, ms.configs[i].Seeds = addresses[i], addresses[:2]
		}
		ms.start(ms.all()...)
		view, took := ms.await(ms.all(), ms.all())
		worst = max(worst, took)
		if strings.HasPrefix(view, "1 ") {
			t.Errorf("they have begun anew: %s", view)
		}
	}
	figures(t, map[string]any{"case": 33, "members": 5, "worst_ms": worst.Milliseconds()})
}

// Case 33: of eleven members all but one are started again at other addresses. The one that stays
// has a connection to few of them, and finds the others gone where it knows them.
func TestCase33OneStays(t *testing.T) {
	const size = 11
	ms := withDataDirs(t, size)
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	var worst time.Duration
	for _, stays := range []int{7, 2} {
		moving := slices.DeleteFunc(ms.all(), func(i int) bool { return i == stays })
		ms.kill(moving...)
		addresses := testutil.FreeAddresses(t, size)
		for _, i := range moving {
			ms.configs[i].Listen, ms.configs[i].Seeds = addresses[i], []string{addresses[moving[0]], addresses[moving[1]]}
		}
		ms.start(moving...)
		view, took := ms.await(ms.all(), ms.all())
		worst = max(worst, took)
		if strings.HasPrefix(view, "1 ") {
			t.Errorf("they have begun anew: %s", view)
		}
	}
	figures(t, map[string]any{"case": 33, "members": size, "stay": 1, "worst_ms": worst.Milliseconds()})
}

// Case 59: a member is killed, the others leave, and all are started again. The directory of
// the first one has a view that nobody can go on from, so they begin anew.
func TestCase59OneCrashedTheOthersLeft(t *testing.T) {
	var worst time.Duration
	for crashed := range 3 {
		ms := withDataDirs(t, 3)
		ms.start(ms.all()...)
		ms.await(ms.all(), ms.all())
		others := slices.DeleteFunc(ms.all(), func(i int) bool { return i == crashed })
		ms.kill(crashed)
		ms.await(others, others)
		ms.terminate(others...)
		ms.start(ms.all()...)
		_, took := ms.await(ms.all(), ms.all())
		worst = max(worst, took)
		ms.kill(ms.all()...)
	}
	figures(t, map[string]any{"case": 59, "worst_ms": worst.Milliseconds()})
}

// flood broadcasts until that fails.
func flood(g *pleach.Group) {
	for {
		if err := g.Broadcast(context.Background(), make([]byte, 64<<10)); err != nil {
			fmt.Println("broadcast ends:", errors.Is(err, pleach.ErrNoQuorum))
			return
		}
	}
}

// Case 35: the quorum is lost while broadcasts wait for members that are stopped. All of
// them end when the program is told.
func TestCase35WaitingBroadcasts(t *testing.T) {
	ms := newMembers(t, 3, 3, func(i int, c *memberConfig) { c.Flood = i == 0 })
	ms.start(ms.all()...)
	ms.await(ms.all(), ms.all())
	time.Sleep(200 * time.Millisecond)
	for _, i := range []int{1, 2} {
		ms.running[i].Signal(syscall.SIGSTOP)
	}
	_, told := ms.running[0].Wait(t, "no quorum:")
	ended := func() (n int) {
		for _, line := range ms.running[0].All() {
			if strings.HasPrefix(line, "broadcast ends: true") {
				n++
			}
		}
		return n
	}
	testutil.Eventually(t, "3 broadcasts ended", func() bool { return ended() == 3 }, func() any { return ended() })
	took := time.Since(told)
	testutil.Took(t, "the end of the broadcasts", took, 5*time.Second)
	figures(t, map[string]any{"case": 35, "ended_ms": took.Milliseconds()})
}

// Case 41: the data directory of a member is in use by another process. It is refused at once,
// by name, and trying again does not help.
func TestCase41DataDirInUse(t *testing.T) {
	c := pleach.Config{Group: "faults", ID: "one", Recovery: pleach.Recovery{DataDir: t.TempDir()}}
	first, err := pleach.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Abort()
	began := time.Now()
	_, err = pleach.Join(t.Context(), c, first.Self().Address)
	var join *pleach.JoinError
	if !errors.As(err, &join) || !join.Permanent || !strings.Contains(err.Error(), c.Recovery.DataDir) ||
		!strings.Contains(err.Error(), "in use") {
		t.Errorf("%v", err)
	}
	testutil.Took(t, "the refusal", time.Since(began), time.Second)
}
