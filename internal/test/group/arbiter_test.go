package group_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/fault"
)

// arbiter is one in memory, which does not forget.
type arbiter struct {
	mu     sync.Mutex
	grants map[string]pleach.ArbiterClaim // the last of each group
	err    error                          // of all calls
	asked  int
}

func (a *arbiter) Grant(_ context.Context, claim pleach.ArbiterClaim) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	last, ok := a.grants[claim.Group]
	switch {
	case a.err != nil:
		return false, a.err
	case !ok || claim.View > last.View:
		if a.grants == nil {
			a.grants = make(map[string]pleach.ArbiterClaim)
		}
		a.grants[claim.Group] = claim
		return true, nil
	}
	return reflect.DeepEqual(last, claim), nil
}

// fails makes all calls fail, or none.
func (a *arbiter) fails(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *arbiter) calls() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// "With an arbiter, a group of two survives the death of either member" (Config.Arbiter), soon.
func TestEitherOfTwoSurvives(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	var slowest time.Duration
	var judge arbiter
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			name := fmt.Sprint("two", i)
			groups := joinWhole(t, 2, func(c *pleach.Config) { c.Group, c.Arbiter = name, &judge })
			meet(t, groups)
			dead, survivor := groups[i%2], groups[1-i%2]
			began := time.Now()
			if err := dead.Abort(); err != nil {
				t.Fatal(err)
			}
			v := awaitView(t, survivor, "alone", ofSize(1))
			took := time.Since(began)
			slowest = max(slowest, took)
			if took > 2*time.Second && !testutil.RaceEnabled {
				t.Errorf("rank %d is in its view after %v", survivor.Rank(), took)
			}
			broadcast(t, survivor, "alone")
			q := survivor.Status().Quorum
			if a := q.Arbiter; a.State != pleach.ArbiterGranted || a.View != v.Number || a.Since.Before(began) || a.Cause != "" {
				t.Errorf("the status of the arbiter: %+v", a)
			}
			q.Arbiter = pleach.ArbiterStatus{}
			if q != (pleach.Quorum{Voters: 1, Reachable: 1, Needed: 1, OK: true}) {
				t.Errorf("a whole view of one: %+v", q)
			}
			judge.mu.Lock()
			defer judge.mu.Unlock()
			if g := judge.grants[name]; g.View != v.Number || len(g.Side) != 1 || g.Side[0] != v.Members()[0] {
				t.Errorf("in %+v, granted was %+v", v, g)
			}
		})
	}
	t.Logf("the slowest of %d took %v", rounds, slowest)
}

// Without an answer of the arbiter, half has no quorum, says so, and continues when there is one.
func TestArbiterThatDoesNotAnswer(t *testing.T) {
	down := errors.New("its network is down")
	for dead := range 2 {
		judge := arbiter{err: down}
		groups := joinWhole(t, 2, func(c *pleach.Config) { c.Arbiter = &judge })
		meet(t, groups)
		left := groups[1-dead]
		if a := left.Status().Quorum.Arbiter; a != (pleach.ArbiterStatus{State: pleach.ArbiterNotAsked}) {
			t.Errorf("before it is asked: %+v", a)
		}
		if err := groups[dead].Abort(); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, "no answer", func() bool { return errors.Is(left.View().Err, pleach.ErrArbiterUnavailable) })
		v := left.View()
		var lost *pleach.QuorumError
		if !errors.Is(v.Err, down) || !errors.Is(v.Err, pleach.ErrNoQuorum) || !errors.As(v.Err, &lost) ||
			lost.Reachable != 1 || lost.Needed != 2 || v.Number != 1 {
			t.Errorf("in view %d: %v", v.Number, v.Err)
		}
		if err := left.Broadcast(t.Context(), nil); !errors.Is(err, pleach.ErrNoQuorum) {
			t.Errorf("a broadcast of half: %v", err)
		}
		first := left.Status().Quorum.Arbiter
		if first.State != pleach.ArbiterUnavailable || first.View != 2 || first.Cause != down.Error() {
			t.Errorf("without an answer: %+v", first)
		}
		testutil.Eventually(t, "it asks again", func() bool {
			a := left.Status().Quorum.Arbiter
			if !a.Since.Equal(first.Since) {
				t.Errorf("unavailable since %v, and then since %v", first.Since, a.Since)
			}
			return judge.calls() > 2 && a.LastCall.After(first.LastCall)
		})
		judge.fails(nil)
		awaitView(t, left, "alone", ofSize(1))
		broadcast(t, left, "alone")
	}
}

// A majority does not ask, and neither do two members of which one leaves.
func TestArbiterIsNotAskedForMajorities(t *testing.T) {
	judge := arbiter{err: errors.New("it is down")}
	groups := joinWhole(t, 3, func(c *pleach.Config) { c.Arbiter = &judge })
	meet(t, groups)
	if err := groups[0].Abort(); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups[1:] {
		awaitView(t, g, "two of three", ofSize(2))
	}
	if err := groups[1].Leave(t.Context()); err != nil { // the lower of the two
		t.Fatal(err)
	}
	awaitView(t, groups[2], "alone", ofSize(1))
	if n := judge.calls(); n > 0 {
		t.Errorf("the arbiter was asked %d times", n)
	}
}

// Of the two halves of a partition exactly one continues. The other stops, says why, and joins again
// after the heal.
func TestOneHalfContinues(t *testing.T) {
	for _, size := range []int{2, 4} {
		var judge arbiter
		bad := fault.New(1, fault.Config{})
		addresses := testutil.FreeAddresses(t, size)
		groups, feeds := make([]*pleach.Group, size), make([]*detect.Feed, size)
		for r := range groups {
			inner, err := tcp.New(tcp.Config{Group: "halves", Rank: protocol.Rank(r), Addresses: addresses, Open: true})
			if err != nil {
				t.Fatal(err)
			}
			feeds[r] = detect.NewFeed()
			groups[r] = start(t, pleach.Config{
				Group: "halves", Addresses: addresses, Rank: r, Arbiter: &judge,
				Network:   pleach.Network{Transport: bad.Wrap(protocol.Rank(r), inner)},
				Detection: pleach.Detection{Detectors: []detect.Detector{feeds[r]}},
			})
		}
		meet(t, groups)
		parted, err := fault.Parse(map[int]string{2: "partition 0 | 1", 4: "partition 0 2 | 1 3"}[size])
		if err != nil {
			t.Fatal(err)
		}
		if err := bad.Run(t.Context(), parted); err != nil {
			t.Fatal(err)
		}
		for r, feed := range feeds {
			for other := range size {
				if r%2 != other%2 {
					feed.Suspect(protocol.Rank(other), errors.New("silent"))
				}
			}
		}
		testutil.Eventually(t, "a half continues", func() bool {
			return slices.ContainsFunc(groups, func(g *pleach.Group) bool { return g.View().Size() == size/2 })
		})
		winner := slices.IndexFunc(groups, func(g *pleach.Group) bool { return g.View().Size() == size/2 }) % 2
		for r, g := range groups {
			if r%2 == winner {
				awaitView(t, g, "the half that continues", ofSize(size/2))
				continue
			}
			testutil.Eventually(t, fmt.Sprintf("rank %d stops", r), func() bool {
				lost := pleach.ErrNoQuorum
				if r == 1-winner { // which asks for its side
					lost = pleach.ErrArbiterRefused
				}
				// It asks others about a later view, which the partition of this transport does not concern.
				return errors.Is(g.View().Err, lost) || errors.Is(g.Err(), pleach.ErrEvicted)
			})
			if v := g.View(); v.Number != 1 {
				t.Errorf("rank %d is in view %d", r, v.Number)
			}
			want := pleach.ArbiterNotAsked
			if r == 1-winner {
				want = pleach.ArbiterRefused
			}
			if a := g.Status().Quorum.Arbiter; a.State != want && g.Err() == nil {
				t.Errorf("the arbiter's answer at rank %d: %+v, want %s", r, a, want)
			}
		}
		bad.Do(fault.Heal{})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for r, g := range groups {
			if r%2 == winner {
				continue
			}
			for range g.Views(ctx) { // until it is over
			}
			if err := g.Err(); !errors.Is(err, pleach.ErrEvicted) {
				t.Fatalf("rank %d after the heal: %v", r, err)
			}
			if err := g.Rejoin(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range groups {
			awaitView(t, g, "all", ofSize(size))
		}
	}
}

// Whether a group has an arbiter must be the same at all members: each of the two finds out.
func TestArbiterMustAgree(t *testing.T) {
	for what, c := range map[string][2]pleach.Arbiter{
		"only the member": {&arbiter{}, nil}, "only the process that joins": {nil, &arbiter{}},
	} {
		addresses := testutil.FreeAddresses(t, 2)
		member(t)(pleach.Create(t.Context(), pleach.Config{Group: "alike", Listen: addresses[0], Arbiter: c[0]}))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, err := pleach.Join(ctx, pleach.Config{Group: "alike", Listen: addresses[1], Arbiter: c[1]}, addresses[0])
		cancel()
		var setting *pleach.SettingError
		if !errors.As(err, &setting) || setting.Setting != "Arbiter" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An arbiter is for groups with a quorum.
func TestArbiterNeedsAQuorum(t *testing.T) {
	for what, c := range map[string]pleach.Config{
		"any minority": {AllowMinority: true}, "static": {Static: true},
	} {
		c.Group, c.Addresses, c.Arbiter = "x", []string{"127.0.0.1:1", "127.0.0.1:2"}, &arbiter{}
		_, err := pleach.Start(t.Context(), c)
		var config *pleach.ConfigError
		if !errors.As(err, &config) || config.Field != "Arbiter" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// After both of two members have crashed, either one that returns with its data directory continues if
// the arbiter lets it, and waits for the other one otherwise.
func TestEitherOfTwoReturns(t *testing.T) {
	for _, refused := range []bool{false, true} {
		for returning := range 2 {
			var judge arbiter
			dir, addresses := t.TempDir(), testutil.FreeAddresses(t, 2)
			join := func(ctx context.Context, i int) (*pleach.Group, error) {
				return pleach.Join(ctx, pleach.Config{
					Group: "return", ID: fmt.Sprint("m", i), Listen: addresses[i], Expect: 2, Arbiter: &judge,
					Recovery: pleach.Recovery{DataDir: filepath.Join(dir, fmt.Sprint("m", i))},
				}, addresses...)
			}
			both := make([]*pleach.Group, 2)
			var joining sync.WaitGroup
			for i := range both {
				joining.Go(func() {
					var err error
					both[i], err = join(t.Context(), i)
					if err != nil {
						t.Error(err)
					}
				})
			}
			joining.Wait()
			if t.Failed() {
				t.FailNow()
			}
			judge.fails(errors.New("it is down")) // so that the first death decides nothing
			for _, g := range both {
				if err := g.Abort(); err != nil {
					t.Fatal(err)
				}
			}
			judge.fails(nil)
			if refused {
				_, _ = judge.Grant(t.Context(), pleach.ArbiterClaim{Group: "return", View: 99})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if refused {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
			}
			g, err := join(ctx, returning)
			cancel()
			switch {
			case refused && (err == nil || !strings.Contains(err.Error(), "the arbiter has let the others continue")):
				t.Errorf("m%d was refused: %v", returning, err)
			case !refused && err != nil:
				t.Errorf("m%d: %v", returning, err)
			case !refused:
				awaitView(t, g, "alone", ofSize(1))
			}
			if g != nil {
				_ = g.Abort()
			}
		}
	}
}
