//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// podRole is the environment variable that makes this test binary a member that joins
// under a given ID. Its value is a podConfig.
const podRole = "PLEACH_FAULTS_POD"

type podConfig struct {
	ID     string
	Seeds  []string
	Rejoin bool // after it was removed, as often as it takes
}

func init() { testutil.PlayRole(podRole, podConfig.run) }

// run is the member. It says when it becomes one, and why it no longer is.
func (c podConfig) run() {
	ctx := context.Background()
	var log testutil.LogBuffer
	g, err := pleach.Join(ctx, pleach.Config{Group: "faults", ID: c.ID, Logger: log.Logger()}, c.Seeds...)
	for err == nil {
		fmt.Println("member", g.Rank())
		for range g.Messages(ctx) {
		}
		fmt.Printf("ended replaced=%t logged=%d error=%v\n", errors.Is(g.Err(), pleach.ErrReplaced),
			len(log.Lines("replaced", "WARN")), g.Err())
		if !c.Rejoin {
			_ = g.Abort()
			time.Sleep(time.Minute)
			return
		}
		err = g.Rejoin(ctx)
	}
	fmt.Printf("out replaced=%t in-use=%t error=%v\n", errors.Is(err, pleach.ErrReplaced),
		errors.Is(err, pleach.ErrIdentityInUse), err)
}

// replacePod stops a member, lets a process with its ID join from another address, and
// lets the stopped one go on.
func replacePod(t *testing.T, rejoin bool) (old *testutil.Process, groups []*pleach.Group, logs []*testutil.LogBuffer,
	resumed time.Time,
) {
	t.Helper()
	groups = grow(t, 3, func(string) pleach.Config {
		logs = append(logs, new(testutil.LogBuffer))
		return pleach.Config{Logger: logs[len(logs)-1].Logger()}
	})
	seed := groups[0].Self().Address
	old = testutil.StartRole(t, podRole, podConfig{ID: "pod", Seeds: []string{seed}, Rejoin: rejoin})
	old.Wait(t, "member")
	old.Signal(syscall.SIGSTOP)
	time.Sleep(100 * time.Millisecond) // until it has stopped
	began := time.Now()
	successor, err := pleach.Join(t.Context(), pleach.Config{Group: "faults", ID: "pod"}, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = successor.Abort() })
	t.Logf("the successor is rank %d after %v", successor.Rank(), time.Since(began))
	groups = append(groups, successor)
	for _, g := range groups {
		for v := range g.Views(t.Context()) {
			if v.Number >= successor.View().Number {
				break
			}
		}
	}
	resumed = time.Now()
	old.Signal(syscall.SIGCONT)
	return old, groups, logs, resumed
}

// Case 7: a process is stopped, a successor with its ID joins from another address, as a
// pod that was moved, and the old one goes on. It learns by which process it was
// replaced, and the others log it once.
func TestCase7ReplacedProcessLearnsIt(t *testing.T) {
	old, groups, logs, resumed := replacePod(t, false)
	view := groups[0].View().Number
	end, at := old.Wait(t, "ended")
	took := at.Sub(resumed)
	time.Sleep(300 * time.Millisecond) // what is logged again and again shows
	lines := 0
	for _, l := range logs {
		lines = max(lines, len(l.Lines("connection refused")))
	}
	figures(t, map[string]any{
		"case": 7, "replaced_ms": took.Milliseconds(), "error": end, "log_lines_of_a_peer": lines,
		"views": groups[0].View().Number - view,
	})
	if !strings.HasPrefix(end, "replaced=true logged=1 ") || !strings.Contains(end, groups[3].Self().Address) {
		t.Errorf("the old process: %s", end)
	}
	if lines > 2 {
		t.Errorf("a peer has %d lines: %q", lines, logs[0].Lines("connection refused"))
	}
	if testutil.Full.On() && took > time.Second {
		t.Errorf("it learned so after %v", took)
	}
	expectNoChange(t, groups, view)
}

// Case 8: the replaced process follows the advice to rejoin. It stays out, and the views
// stay as they are.
func TestCase8ReplacedProcessStaysOut(t *testing.T) {
	old, groups, _, resumed := replacePod(t, true)
	view := groups[0].View().Number
	out, at := old.Wait(t, "out")
	time.Sleep(seconds())
	views := groups[0].View().Number - view
	figures(t, map[string]any{"case": 8, "out_ms": at.Sub(resumed).Milliseconds(), "error": out, "views": views})
	if !strings.HasPrefix(out, "replaced=true") {
		t.Errorf("the old process: %s", out)
	}
	if views > 0 {
		t.Errorf("%d views", views)
	}
	if err := groups[3].Err(); err != nil {
		t.Errorf("the successor ended: %v", err)
	}
	expectNoChange(t, groups, view)
}

// Case 9: a second process has the ID of a live one, be that the founder or not. It is
// refused at once, whichever member it asks, and learns which one has the ID.
func TestCase9SecondProcessIsRefused(t *testing.T) {
	groups := grow(t, 3, func(string) pleach.Config { return pleach.Config{} })
	view := groups[0].View().Number
	for _, holder := range groups[:2] {
		for _, asked := range groups {
			began := time.Now()
			g, err := pleach.Join(t.Context(), pleach.Config{Group: "faults", ID: holder.Self().ID}, asked.Self().Address)
			if err == nil {
				_ = g.Abort()
				t.Fatalf("a second %s is rank %d", holder.Self().ID, g.Rank())
			}
			took := time.Since(began)
			var inUse *pleach.IdentityInUseError
			var join *pleach.JoinError
			if !errors.As(err, &inUse) || !errors.Is(err, pleach.ErrIdentityInUse) || !errors.As(err, &join) || !join.Permanent {
				t.Fatalf("asked at rank %d: %v", asked.Rank(), err)
			}
			if inUse.Rank != holder.Rank() || inUse.Address != holder.Self().Address ||
				inUse.Incarnation != holder.Self().Incarnation || inUse.View != view {
				t.Errorf("asked at rank %d: %+v, want %+v", asked.Rank(), inUse, holder.Self())
			}
			if inUse.Since.IsZero() != (asked.Self().Incarnation > holder.Self().Incarnation) {
				t.Errorf("asked at rank %d, a member since view %d: %v", asked.Rank(), asked.Self().Incarnation, inUse)
			}
			if testutil.Full.On() && took > 100*time.Millisecond {
				t.Errorf("refused after %v", took)
			}
			figures(t, map[string]any{
				"case": 9, "holder": holder.Rank(), "asked": asked.Rank(),
				"refused_ms": float64(took.Microseconds()) / 1000, "error": inUse.Error(),
			})
		}
	}
	expectNoChange(t, groups, view)
}

// Case 9: a process that insists takes the place of the live founder, which learns it.
func TestCase9ReplaceALiveProcess(t *testing.T) {
	for _, size := range []int{1, 3} {
		groups := grow(t, size, func(string) pleach.Config { return pleach.Config{} })
		founder := groups[0]
		began := time.Now()
		g, err := pleach.Join(t.Context(), pleach.Config{
			Group: "faults", ID: founder.Self().ID,
			Recovery: pleach.Recovery{Replace: true},
		}, founder.Self().Address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		took := time.Since(began)
		for range founder.Messages(t.Context()) {
		}
		var replaced *pleach.ReplacedError
		if err := founder.Err(); !errors.As(err, &replaced) || replaced.Address != g.Self().Address ||
			replaced.Incarnation != g.Self().Incarnation {
			t.Errorf("the founder ended with %v", err)
		}
		if err := founder.Rejoin(t.Context()); !errors.Is(err, pleach.ErrReplaced) {
			t.Errorf("it rejoins: %v", err)
		}
		figures(t, map[string]any{"case": 9, "members": size, "replaced_ms": took.Milliseconds(), "rank": g.Rank()})
		groups[0] = g
		expectNoChange(t, groups, g.View().Number)
	}
}

// Case 26: the number by which a process tells its start from others is larger than
// that of all that start later, as if its clock were ahead. The next process at its rank
// is a member like any other: the group gives incarnations.
func TestCase26IncarnationsAreGivenByTheGroup(t *testing.T) {
	groups := grow(t, 3, func(string) pleach.Config { return pleach.Config{} })
	seed := groups[0].Self().Address
	l, err := net.Listen("tcp", testutil.FreeAddresses(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	c, err := tcp.NewCandidate(tcp.Config{Group: "faults", Listener: l},
		func(transport.Client, []byte) []byte { return []byte{1} })
	if err != nil {
		t.Fatal(err)
	}
	request := joinRequest("ahead", l.Addr().String())
	copy(request[len(request)-11:], wire.AppendUint64(nil, math.MaxUint64))
	if reply, err := tcp.Request(t.Context(), tcp.Config{Group: "faults"}, seed, request); err != nil || reply[0] != 1 {
		t.Fatalf("%q, %v", reply, err)
	}
	if err := c.Close(); err != nil { // the process is gone
		t.Fatal(err)
	}
	for v := range groups[0].Views(t.Context()) {
		if v.Size() == 4 {
			if m := v.Members()[3]; m.ID != "ahead" || m.Incarnation != v.Number {
				t.Errorf("%+v in view %d", m, v.Number)
			}
		} else if v.Number > 4 {
			break
		}
	}
	began := time.Now()
	for range 3 { // processes that end and start again at once, at one address
		g, err := pleach.Join(t.Context(), pleach.Config{Group: "faults", ID: "next", Listen: l.Addr().String()}, seed)
		if err != nil {
			t.Fatal(err)
		}
		if self := g.Self(); self.Rank != 3 || self.Incarnation != g.View().Number {
			t.Errorf("%+v in view %d", self, g.View().Number)
		}
		expectNoChange(t, append(groups[:3:3], g), g.View().Number)
		_ = g.Abort()
	}
	figures(t, map[string]any{"case": 26, "three_starts_ms": time.Since(began).Milliseconds()})
}

// Case 27: without TLS and without a secret, processes claim to be members in later
// incarnations than any, at every member. No member is cut off.
func TestCase27ClaimsCutNoMemberOff(t *testing.T) {
	groups := grow(t, 4, func(string) pleach.Config { return pleach.Config{} })
	view := groups[0].View().Number
	var claims sync.WaitGroup
	var accepted atomic.Int64
	for _, incarnation := range []uint64{1, view + 1, math.MaxUint64} {
		for _, g := range groups {
			for rank := range protocol.Rank(8) {
				if int(rank) == g.Rank() {
					continue
				}
				claims.Go(func() {
					h := wire.Hello{
						Group: "faults", From: rank, To: protocol.Rank(g.Rank()), Incarnation: incarnation, Process: 7,
						Attempt: math.MaxUint64,
					}
					c, ok := attacker(t, g.Self().Address, h, nil)
					if ok {
						accepted.Add(1)
					}
					_ = c.Close()
				})
			}
		}
	}
	expectNoChange(t, groups, view) // meanwhile
	claims.Wait()
	expectNoChange(t, groups, view)
	figures(t, map[string]any{
		"case": 27, "claims": 3 * 4 * 7, "accepted": accepted.Load(),
		"views": groups[0].View().Number - view,
	})
	if n := accepted.Load(); n > 0 {
		t.Errorf("%d claims were accepted", n)
	}
}

// Case 26: a member of a group that started as a whole ends and is started again by the same
// command line, with the same rank and address. It is not taken for the one before: it
// learns that the group went on, and rejoins.
func TestCase26RestartInAGroupThatStartedAsAWhole(t *testing.T) {
	var config pleach.Config
	groups := start(t, 4, func(c *pleach.Config) {
		if c.Rank == 2 {
			config = *c
		}
	})
	expectNoChange(t, groups, 1)
	if err := groups[2].Abort(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	again, err := pleach.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Abort() })
	for range again.Messages(t.Context()) {
	}
	if err := again.Err(); !errors.Is(err, pleach.ErrEvicted) {
		t.Fatalf("the second start ended with %v", err)
	}
	evicted := time.Since(began)
	if err := again.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	figures(t, map[string]any{
		"case": 26, "evicted_ms": evicted.Milliseconds(),
		"back_ms": time.Since(began).Milliseconds(), "rank": again.Rank(), "incarnation": again.Self().Incarnation,
	})
	groups[2] = again
	for _, g := range groups {
		for v := range g.Views(t.Context()) {
			if v.Number >= again.View().Number {
				break
			}
		}
	}
	expectNoChange(t, groups, again.View().Number)
}
