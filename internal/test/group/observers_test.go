package group_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// voters begins a group of voters, by agreement.
func voters(t *testing.T, n int) (groups []*pleach.Group, seeds []string) {
	t.Helper()
	seeds = testutil.FreeAddresses(t, n)
	began := make(chan *pleach.Group, n)
	for i, address := range seeds {
		c := pleach.Config{Group: "roles", ID: fmt.Sprintf("voter%d", i), Listen: address, Expect: n}
		go func() {
			g, err := pleach.Join(t.Context(), c, seeds...)
			if err != nil {
				t.Error(err)
			}
			began <- g
		}()
	}
	for range n {
		if g := <-began; g != nil {
			groups = append(groups, member(t)(g, nil))
		}
	}
	if len(groups) < n {
		t.FailNow()
	}
	return groups, seeds
}

func observer(t *testing.T, id string, seeds []string) *pleach.Group {
	t.Helper()
	return member(t)(pleach.Join(t.Context(), pleach.Config{Group: "roles", ID: id, Observer: true}, seeds...))
}

// "Any number of observers may fail at once, as long as a majority of the voters is alive"
// (Config.Observer). They get everything, and the voters never lose their quorum.
func TestAllObserversDieAtOnce(t *testing.T) {
	groups, seeds := voters(t, 3)
	var observers []*pleach.Group
	for i := range 5 {
		observers = append(observers, observer(t, fmt.Sprintf("observer%d", i), seeds))
	}
	for _, g := range append(groups, observers...) {
		v := awaitView(t, g, "all", ofSize(8))
		if n := len(v.Voters()); n != 3 || v.Leader().Observer {
			t.Fatalf("%d voters, led by %+v", n, v.Leader())
		}
	}
	if s := observers[0].Status(); !s.Observer || !s.Quorum.OK || s.Quorum.Voters != 3 || s.Quorum.Reachable != 3 ||
		s.Quorum.Needed != 2 {
		t.Errorf("status of an observer: %+v", s)
	}
	broadcast(t, groups[0], "to all")
	for _, g := range observers {
		awaitText(t, g, "to all")
	}
	for _, g := range observers {
		if err := g.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	broadcast(t, groups[1], "while observers die")
	for _, g := range groups {
		awaitView(t, g, "without observers", func(v pleach.View) bool {
			if v.Err != nil {
				t.Errorf("a voter has lost its quorum: %v", v.Err)
			}
			return v.Size() == 3
		})
	}
	broadcast(t, groups[2], "after they died")
	again := observer(t, "observer9", seeds)
	awaitView(t, groups[0], "another observer", ofSize(4))
	broadcast(t, groups[0], "to the new one")
	awaitText(t, again, "to the new one")
	broadcast(t, again, "from the new one")
}

func broadcast(t *testing.T, g *pleach.Group, text string) {
	t.Helper()
	if err := g.Broadcast(t.Context(), []byte(text)); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

func awaitText(t *testing.T, g *pleach.Group, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for m := range g.Messages(ctx) {
		if string(m.Data) == text {
			return
		}
	}
	t.Fatalf("rank %d does not get %q", g.Rank(), text)
}

// Observers without a majority of the voters have no quorum, however many they are.
func TestObserversAreNoQuorum(t *testing.T) {
	groups, seeds := voters(t, 3)
	var observers []*pleach.Group
	for i := range 3 {
		observers = append(observers, observer(t, fmt.Sprintf("observer%d", i), seeds))
	}
	awaitView(t, groups[2], "all", ofSize(6))
	// The lower ranks die: there may be a view with two voters before the second one does, and the one
	// that is left is no half with the lowest rank then.
	slices.SortFunc(groups, func(a, b *pleach.Group) int { return cmp.Compare(a.Rank(), b.Rank()) })
	for _, g := range groups[:2] {
		_ = g.Abort()
	}
	v := awaitView(t, observers[0], "no quorum", func(v pleach.View) bool { return v.Err != nil })
	var lost *pleach.QuorumError
	if !errors.As(v.Err, &lost) || lost.Reachable != 1 || lost.Members < 2 || lost.Members > 3 || lost.Needed != 2 {
		t.Errorf("%v", v.Err)
	}
	if err := observers[0].Broadcast(t.Context(), []byte("x")); !errors.Is(err, pleach.ErrNoQuorum) {
		t.Errorf("a broadcast without a quorum: %v", err)
	}
}

// A member changes its role by a view. The last voter stays one ([pleach.ErrLastVoter]).
func TestSetObserver(t *testing.T) {
	groups, seeds := voters(t, 2)
	o := observer(t, "observer", seeds)
	if err := groups[0].SetObserver(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if v := groups[0].View(); len(v.Voters()) != 1 || v.Leader().ID != groups[1].Self().ID {
		t.Errorf("voters after a demotion: %+v", v.Voters())
	}
	if err := groups[1].SetObserver(t.Context(), true); !errors.Is(err, pleach.ErrLastVoter) {
		t.Errorf("the last voter is demoted: %v", err)
	}
	if err := o.SetObserver(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := groups[1].SetObserver(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if v := groups[1].View(); len(v.Voters()) != 1 || v.Leader().ID != "observer" {
		t.Errorf("voters after a promotion: %+v", v.Voters())
	}
}

// An observer that is there before the voters waits until they have begun ([pleach.Config.Expect]).
func TestObserverWaitsForVoters(t *testing.T) {
	seeds := testutil.FreeAddresses(t, 2)
	waiting := make(chan *pleach.Group, 1)
	go func() {
		g, err := pleach.Join(t.Context(), pleach.Config{Group: "roles", ID: "early", Observer: true, Expect: 2}, seeds...)
		if err != nil {
			t.Error(err)
		}
		waiting <- g
	}()
	began := make(chan *pleach.Group, 2)
	for i, address := range seeds {
		go func() {
			c := pleach.Config{Group: "roles", ID: fmt.Sprintf("voter%d", i), Listen: address, Expect: 2}
			g, err := pleach.Join(t.Context(), c, seeds...)
			if err != nil {
				t.Error(err)
			}
			began <- g
		}()
	}
	for range 2 {
		member(t)(<-began, nil)
	}
	g := member(t)(<-waiting, nil)
	if v := awaitView(t, g, "all", ofSize(3)); len(v.Voters()) != 2 {
		t.Errorf("%d voters", len(v.Voters()))
	}
}

// Voters begin a group, and without a majority rule there is nothing to count for.
func TestObserverIsRefusedWhereItHasNoEffect(t *testing.T) {
	if _, err := pleach.Create(t.Context(), pleach.Config{Observer: true}); !errors.As(err, new(*pleach.ConfigError)) {
		t.Errorf("Create: %v", err)
	}
	c := pleach.Config{Observer: true, AllowMinority: true}
	if _, err := pleach.Join(t.Context(), c, "127.0.0.1:1"); !errors.As(err, new(*pleach.ConfigError)) {
		t.Errorf("AllowMinority: %v", err)
	}
}
