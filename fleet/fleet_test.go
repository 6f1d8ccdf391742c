package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// patience is how long a test waits for what happens within a second elsewhere.
const patience = time.Minute

// start starts zones of some members each.
func start(t *testing.T, zones map[string]int) map[string][]*fleet.Fleet {
	t.Helper()
	seeds := map[string][]string{}
	members := map[string][]*fleet.Fleet{}
	for zone := range zones {
		members[zone] = append(members[zone], join(t, zone, seeds, 0))
		seeds[zone] = []string{members[zone][0].Zone().Self().Address}
	}
	for zone, n := range zones {
		for i := range n - 1 {
			members[zone] = append(members[zone], join(t, zone, seeds, i+1))
		}
	}
	return members
}

func join(t *testing.T, zone string, seeds map[string][]string, i int) *fleet.Fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f, err := fleet.Join(ctx, fleet.Config{Zone: zone, Seeds: seeds, Group: pleach.Config{ID: fmt.Sprint(zone, i)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Abort() })
	return f
}

// connected waits until the delegates of all zones know each other. Then any of them may
// die, also the only seed of its zone.
func connected(t *testing.T, members map[string][]*fleet.Fleet) {
	t.Helper()
	testutil.Eventually(t, "backbone", func() bool {
		for _, of := range members {
			delegates := 0
			for _, f := range of {
				n := 0
				for _, z := range f.Zones() {
					if z.Connected {
						n++
					}
				}
				if n == len(members) && f.Stats().Delegate {
					delegates++
				}
			}
			if delegates < min(len(of), 3) {
				return false
			}
		}
		return true
	})
}

// Two zones have a backbone each, and only the one whose backbone is the larger knows the
// other. They find each other nevertheless.
func TestZoneFindsOneThatDoesNotKnowIt(t *testing.T) {
	t.Parallel()
	fra, ber := join(t, "fra", nil, 0), join(t, "ber", nil, 0)
	testutil.Eventually(t, "two backbones", func() bool { return fra.Stats().Lead && ber.Stats().Lead })
	seeds := map[string][]string{"ber": {ber.Zone().Self().Address}, "fra": {fra.Zone().Self().Address}}
	members := map[string][]*fleet.Fleet{"fra": {fra}, "ber": {join(t, "ber", seeds, 1), join(t, "ber", seeds, 2)}}
	testutil.Eventually(t, "larger backbone", func() bool {
		return members["ber"][0].Stats().Delegate &&
			members["ber"][1].Stats().Delegate
	})
	_ = ber.Abort() // the next one knows fra
	connected(t, members)
}

// expect receives messages at a member, and compares them with what is to come.
func expect(t *testing.T, f *fleet.Fleet, id string, from, to int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next := from
	for m := range f.Messages(ctx) {
		if m.ID != id {
			continue
		}
		if string(m.Data) != fmt.Sprint(next) {
			t.Fatalf("%s got %q of %s instead of %d", f.Zone().Self().ID, m.Data, id, next)
		}
		next++
		if next > to {
			return
		}
	}
	t.Fatalf("%s has no %d of %s: %v, %v", f.Zone().Self().ID, next, id, ctx.Err(), f.Err())
}

func broadcast(t *testing.T, f *fleet.Fleet, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := f.Broadcast(t.Context(), []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
}

// A broadcast reaches all members of all zones, once and in order, also when the lead of
// either zone is killed in the middle.
func TestBroadcastsOutliveDelegates(t *testing.T) {
	t.Parallel()
	members := start(t, map[string]int{"ber": 4, "fra": 4})
	connected(t, members)
	origin := members["ber"][3]
	broadcast(t, origin, 1, 10)
	expect(t, members["fra"][3], "ber3", 1, 10)
	_ = members["ber"][0].Abort()
	broadcast(t, origin, 11, 20)
	_ = members["fra"][0].Abort()
	broadcast(t, origin, 21, 30)
	expect(t, members["fra"][3], "ber3", 11, 30)
	expect(t, members["fra"][1], "ber3", 1, 30)
	expect(t, members["ber"][1], "ber3", 1, 30)
}

// Members know how many others there are in all zones, after a while.
func TestZonesAreSummarized(t *testing.T) {
	t.Parallel()
	members := start(t, map[string]int{"ber": 2, "fra": 3})
	testutil.Eventually(t, "summary of both zones", func() bool {
		zones := members["ber"][1].Zones()
		return len(zones) == 2 && zones[0].Members == 2 && zones[1].Members == 3 && zones[1].Zone == "fra" && zones[1].Healthy
	})
}

// A setting that the fleet makes itself is refused.
func TestSettingsOfTheFleetAreRefused(t *testing.T) {
	for _, c := range []fleet.Config{
		{},
		{Zone: "a", Group: pleach.Config{Group: "x"}},
		{Zone: "a", Backbone: pleach.Config{ID: "x"}},
		{Zone: "a", Delegates: -1},
	} {
		if _, err := fleet.Join(t.Context(), c); !errors.As(err, new(*pleach.ConfigError)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
