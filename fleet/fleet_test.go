package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
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

// await waits for a condition.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no ", what)
		}
	}
}

// connected waits until all zones have leads that know each other.
func connected(t *testing.T, members map[string][]*fleet.Fleet) {
	t.Helper()
	await(t, "backbone", func() bool {
		for zone := range members {
			lead := false
			for _, f := range members[zone] {
				n := 0
				for _, z := range f.Zones() {
					if z.Connected {
						n++
					}
				}
				lead = lead || f.Stats().Lead && n == len(members)
			}
			if !lead {
				return false
			}
		}
		return true
	})
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
		if next++; next > to {
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
	members := start(t, map[string]int{"ber": 2, "fra": 3})
	await(t, "summary of both zones", func() bool {
		zones := members["ber"][1].Zones()
		return len(zones) == 2 && zones[0].Members == 2 && zones[1].Members == 3 && zones[1].Zone == "fra" && zones[1].Healthy
	})
}

// A setting that the fleet makes itself is refused.
func TestSettingsOfTheFleetAreRefused(t *testing.T) {
	for _, c := range []fleet.Config{
		{},
		{Zone: "a", Group: pleach.Config{Group: "x"}},
		{Zone: "a", Group: pleach.Config{Meta: "x"}},
		{Zone: "a", Backbone: pleach.Config{ID: "x"}},
		{Zone: "a", Delegates: -1},
	} {
		if _, err := fleet.Join(t.Context(), c); !errors.As(err, new(*pleach.ConfigError)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
