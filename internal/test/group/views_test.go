package group_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// joinWhole starts a group as a whole, with views.
func joinWhole(t *testing.T, size int, change func(*pleach.Config)) []*pleach.Group {
	t.Helper()
	addresses := testutil.FreeAddresses(t, size)
	groups := make([]*pleach.Group, size)
	for r := range groups {
		c := pleach.Config{Group: "whole", Addresses: addresses, Rank: r}
		if change != nil {
			change(&c)
		}
		groups[r] = start(t, c)
	}
	return groups
}

// awaitView waits until a member is in a view that is as wanted.
func awaitView(t *testing.T, g *pleach.Group, what string, good func(pleach.View) bool) pleach.View {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for v := range g.Views(ctx) {
		if good(v) {
			return v
		}
	}
	t.Fatalf("rank %d: %s: the last view is %+v (%v)", g.Rank(), what, g.View(), g.Err())
	panic("unreachable")
}

func without(ranks ...int) func(pleach.View) bool {
	return func(v pleach.View) bool {
		for _, r := range ranks {
			if v.Has(r) {
				return false
			}
		}
		return true
	}
}

func ofSize(n int) func(pleach.View) bool {
	return func(v pleach.View) bool { return v.Size() == n }
}

// meet lets everybody say something, so that all have been seen.
func meet(t *testing.T, groups []*pleach.Group) {
	t.Helper()
	everybody(t, groups, nil, 1, func(int) int { return 8 })
}

func TestSurvivorsAgreeOnAView(t *testing.T) {
	groups := joinWhole(t, 7, nil)
	meet(t, groups)
	for _, dead := range []int{3, 0} { // the second is the coordinator
		if err := groups[dead].Abort(); err != nil {
			t.Fatal(err)
		}
	}
	var first pleach.View
	for r, g := range groups {
		if r == 3 || r == 0 {
			continue
		}
		v := awaitView(t, g, "without 0 and 3", without(0, 3))
		if first.Size() == 0 {
			first = v
		}
		if v.Size() != 5 || v.Number != first.Number || !slices.Equal(v.Members(), first.Members()) {
			t.Errorf("rank %d is in %+v, others in %+v", r, v, first)
		}
	}
	everybody(t, groups, map[int]bool{0: true, 3: true}, 20, func(i int) int { return i * 900 })
}

// awaitNoQuorum waits until the member has learned that it is in a minority, and checks
// that its broadcasts say so.
func awaitNoQuorum(t *testing.T, g *pleach.Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	testutil.Eventually(t, fmt.Sprintf("rank %d has no quorum", g.Rank()), func() bool {
		err := g.Broadcast(ctx, nil)
		if err != nil && !errors.Is(err, pleach.ErrNoQuorum) {
			t.Fatalf("rank %d of the minority: %v", g.Rank(), err)
		}
		return err != nil
	})
}

// A network that falls in two: the majority goes on, the minority stops and says
// why, and after the heal it learns that the others have gone on, and rejoins.
func TestMinorityStopsAndRejoins(t *testing.T) {
	const size = 5
	bad := fault.New(1, fault.Config{})
	addresses := testutil.FreeAddresses(t, size)
	groups, feeds := make([]*pleach.Group, size), make([]*detect.Feed, size)
	for r := range groups {
		inner, err := tcp.New(tcp.Config{Group: "parted", Rank: protocol.Rank(r), Addresses: addresses, Open: true})
		if err != nil {
			t.Fatal(err)
		}
		feeds[r] = detect.NewFeed()
		groups[r] = start(t, pleach.Config{
			Group: "parted", Addresses: addresses, Rank: r,
			Network:   pleach.Network{Transport: bad.Wrap(protocol.Rank(r), inner)},
			Detection: pleach.Detection{Detectors: []detect.Detector{feeds[r]}},
		})
	}
	meet(t, groups)
	parted, err := fault.Parse("partition 0 2 4 | 1 3")
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.Run(t.Context(), parted); err != nil {
		t.Fatal(err)
	}
	silent := errors.New("silent")
	for r, feed := range feeds {
		for other := range size {
			if r%2 != other%2 {
				feed.Suspect(protocol.Rank(other), silent)
			}
		}
	}
	for _, r := range []int{0, 2, 4} {
		awaitView(t, groups[r], "the majority", without(1, 3))
	}
	for _, r := range []int{1, 3} {
		awaitNoQuorum(t, groups[r])
	}
	bad.Do(fault.Heal{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, r := range []int{1, 3} {
		for range groups[r].Views(ctx) { // until it is over
		}
		if err := groups[r].Err(); !errors.Is(err, pleach.ErrEvicted) {
			t.Fatalf("rank %d after the heal: %v", r, err)
		}
		if err := groups[r].Rejoin(ctx); err != nil {
			t.Fatal(err)
		}
		if rank := groups[r].Rank(); rank != r {
			t.Errorf("rank %d has come back as %d", r, rank)
		}
	}
	for _, r := range []int{0, 2, 4} {
		awaitView(t, groups[r], "everybody", ofSize(size))
	}
}

// Without the quorum, the last one alive goes on.
func TestLastOneGoesOn(t *testing.T) {
	groups := joinWhole(t, 4, func(c *pleach.Config) { c.AllowMinority = true })
	meet(t, groups)
	for _, r := range []int{0, 1, 3} {
		if err := groups[r].Abort(); err != nil {
			t.Fatal(err)
		}
	}
	awaitView(t, groups[2], "alone", ofSize(1))
	if err := groups[2].Broadcast(t.Context(), []byte("alone")); err != nil {
		t.Error(err)
	}
}

func TestFoundJoinLeave(t *testing.T) {
	founder := member(t)(pleach.Create(t.Context(), pleach.Config{Group: "grows"}))
	seed := founder.View().Leader().Address
	groups := []*pleach.Group{founder}
	for i := range 4 {
		g := member(t)(pleach.Join(t.Context(), pleach.Config{
			Group: "grows", ID: fmt.Sprint("member ", i+1),
			FailureDomain: fmt.Sprint(i % 2),
		}, seed))
		if g.Rank() != i+1 {
			t.Errorf("joiner %d has rank %d", i+1, g.Rank())
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		awaitView(t, g, "all five", ofSize(5))
	}
	meet(t, groups)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := groups[2].Leave(ctx); err != nil {
		t.Fatal(err)
	}
	if err := groups[2].Broadcast(ctx, nil); !errors.Is(err, pleach.ErrLeft) {
		t.Errorf("broadcast of one who has left: %v", err)
	}
	for _, r := range []int{0, 1, 3, 4} {
		awaitView(t, groups[r], "without rank 2", without(2))
	}
	back := member(t)(pleach.Join(t.Context(), pleach.Config{Group: "grows", ID: "member 2"},
		groups[4].View().Leader().Address))
	if back.Rank() != 2 {
		t.Errorf("who has come back has rank %d, not 2", back.Rank())
	}
	groups[2] = back
	for _, g := range groups {
		awaitView(t, g, "all five again", ofSize(5))
	}
	everybody(t, []*pleach.Group{groups[0], groups[1], groups[2], groups[3], groups[4]}, nil, 1,
		func(int) int { return 8 })

	outside, err := pleach.Inspect(ctx, pleach.Config{Group: "grows"}, seed)
	same := func(a, b pleach.Member) bool {
		known := a.Nonce == b.Nonce // only members know it
		a.Nonce = b.Nonce
		return a == b && !known
	}
	if err != nil || outside.View.Number != founder.View().Number ||
		!slices.EqualFunc(outside.View.Members(), founder.View().Members(), same) || outside.Progress != nil {
		t.Errorf("from outside: %+v with %v, %v", outside, outside.View.Members(), err)
	}
}

// A herd that joins at once makes few views.
func TestHerdJoins(t *testing.T) {
	const herd = 40
	founder := member(t)(pleach.Create(t.Context(), pleach.Config{Group: "herd"}))
	seed := founder.View().Leader().Address
	var wg sync.WaitGroup
	for range herd {
		wg.Go(func() {
			g, err := pleach.Join(t.Context(), pleach.Config{Group: "herd"}, seed)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = g.Abort() })
		})
	}
	wg.Wait()
	if v := awaitView(t, founder, "everybody", ofSize(herd+1)); v.Number > 8 {
		t.Errorf("%d views for a herd of %d", v.Number, herd)
	}
}

func TestRejoin(t *testing.T) {
	groups := joinWhole(t, 5, nil)
	meet(t, groups)
	if err := groups[1].Abort(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []int{0, 2, 3, 4} {
		awaitView(t, groups[r], "without rank 1", without(1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := groups[1].Rejoin(ctx); err != nil {
		t.Fatal(err)
	}
	if rank := groups[1].Rank(); rank != 1 {
		t.Errorf("rank %d after rejoining, not 1", rank)
	}
	for _, g := range groups {
		awaitView(t, g, "all five", ofSize(5))
	}
}
