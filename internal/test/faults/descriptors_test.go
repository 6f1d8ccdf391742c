//go:build unix

package faults

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// coordinatorRole is the environment variable that makes this test binary rank 0 of a
// group with few file descriptors. Its value is a coordinatorConfig.
const coordinatorRole = "PLEACH_FAULTS_DESCRIPTORS"

type coordinatorConfig struct {
	Addresses   []string
	Descriptors uint64
	Watch       time.Duration
}

func init() {
	testutil.PlayRole(coordinatorRole, func(c coordinatorConfig) {
		if err := c.run(); err != nil {
			fmt.Println("error", err)
		}
	})
}

// run is the coordinator. It broadcasts, and tells how many members it sees in the end,
// and whether it knows why it cannot reach them all.
func (c *coordinatorConfig) run() error {
	limit := syscall.Rlimit{Cur: c.Descriptors, Max: c.Descriptors}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	g, err := pleach.Start(context.Background(), pleach.Config{Group: "faults", Addresses: c.Addresses})
	if err != nil {
		return err
	}
	fmt.Println("started")
	known := c.exhaust(g)
	time.Sleep(c.Watch)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := g.Broadcast(ctx, []byte("from the coordinator")); err != nil {
		return err
	}
	s := g.Status()
	fmt.Println("members", s.Members, "suspects", len(s.Suspects), "known", known)
	select {}
}

// exhaust takes all descriptors that are left, as a program that leaks them does, until
// the member says that it cannot accept a connection. Then it gives them back.
func (c *coordinatorConfig) exhaust(g *pleach.Group) (known bool) {
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		taken = append(taken, f)
	}
	defer func() {
		for _, f := range taken {
			_ = f.Close()
		}
	}()
	for end := time.Now().Add(c.Watch); !known && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		known = strings.Contains(g.Status().LastError, syscall.EMFILE.Error())
	}
	return known
}

// Case 28: a coordinator has fewer file descriptors than members. It takes none of them
// for dead, knows what it lacks, and its broadcasts reach all members.
func TestCase28CoordinatorWithoutDescriptors(t *testing.T) {
	const members, descriptors = 40, 32
	addresses := testutil.FreeAddresses(t, members)
	var coordinator *testutil.Process
	withPriority(func() {
		coordinator = testutil.StartRole(t, coordinatorRole, coordinatorConfig{addresses, descriptors, 8 * time.Second})
	})
	var groups []*pleach.Group
	for r := 1; r < members; r++ {
		g, err := pleach.Start(t.Context(), pleach.Config{Group: "faults", Addresses: addresses, Rank: r})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		groups = append(groups, g)
	}
	coordinator.Wait(t, "started")
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	for _, g := range groups { // every member is needed by some other one
		if err := g.Broadcast(ctx, []byte("hello")); err != nil {
			t.Error(err)
		}
	}
	said, _ := coordinator.Wait(t, "members ")
	received, left := 0, 0
	for _, g := range groups {
		for m := range g.Messages(ctx) {
			if string(m.Data) == "from the coordinator" {
				received++
				break
			}
		}
		if v := g.View(); v.Size() < members {
			left = max(left, members-v.Size())
		}
	}
	figures(t, map[string]any{
		"case": 28, "members": members, "descriptors": descriptors, "removed": left,
		"received": received, "coordinator": said,
	})
	if left > 0 || received < members-1 || !strings.HasPrefix(said, fmt.Sprint(members, " suspects 0 known true")) {
		t.Errorf("%d members were removed, %d received the broadcast; the coordinator says: members %s", left, received, said)
	}
	viewWithout(t, groups, members/2)
}

// withPriority starts a process that comes before others on a busy host: this one has 39
// members, and a process that gets no processor is rightly taken for dead. A process
// inherits the priority of the thread that starts it. Only root may raise it.
func withPriority(start func()) {
	const high, normal = -10, 0
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if syscall.Setpriority(syscall.PRIO_PROCESS, 0, high) == nil {
		defer func() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, normal) }()
	}
	start()
}

// viewWithout kills a member, and waits until the others have a view without it, although
// their coordinator cannot reach them all.
func viewWithout(t *testing.T, groups []*pleach.Group, killed int) {
	t.Helper()
	rank := groups[killed].Rank()
	_ = groups[killed].Abort()
	groups = slices.Delete(slices.Clone(groups), killed, killed+1)
	began := time.Now()
	for len(groups) > 0 {
		v := groups[0].View()
		switch {
		case !slices.ContainsFunc(v.Members(), func(m pleach.Member) bool { return m.Rank == rank }):
			groups = groups[1:]
		case time.Since(began) > time.Minute:
			t.Fatalf("rank %d is in view %d of rank %d after %v", rank, v.Number, groups[0].Rank(), time.Since(began))
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
	testutil.Took(t, "a view", time.Since(began), 5*time.Second)
	figures(t, map[string]any{"case": 28, "killed": rank, "view_ms": time.Since(began).Milliseconds()})
}
