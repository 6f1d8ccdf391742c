package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// attach makes a process with a group of its own a member of a zone.
func attach(t *testing.T, zone string, seeds map[string][]string, meta string) (*pleach.Group, *fleet.Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := fleet.Config{Name: "shop", Zone: zone, Seeds: seeds, Group: pleach.Config{Meta: meta}}
	name := c.GroupName()
	g, err := pleach.Join(ctx, pleach.Config{Group: name, ID: zone, Meta: meta, Expect: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Abort() })
	f, err := fleet.Attach(ctx, g, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return g, f
}

// Programs attach a fleet to groups of their own, whose meta stays theirs, ask other zones, and
// see the link between them. Closing the fleet leaves the group as it was.
func TestAttach(t *testing.T) {
	t.Parallel()
	ga, a := attach(t, "ams", nil, "role=web")
	_, b := attach(t, "ber", map[string][]string{"ams": {ga.Self().Address}}, "")
	b.Handle("load", func(_ context.Context, r fleet.Request) ([]byte, error) {
		if string(r.Data) == "bad" {
			return nil, errors.New("no such load")
		}
		return fmt.Append(nil, r.Zone, "/", r.ID, " asks ", string(r.Data)), nil
	})
	testutil.Eventually(t, "backbone", func() bool {
		return len(a.Links()) == 1 && a.Links()[0].Connected &&
			len(b.Links()) == 1
	})
	testutil.Eventually(t, "delegate", func() bool {
		meta := ga.Self().Meta
		return strings.HasPrefix(meta, "role=web backbone=") && len(a.Delegates()) == 1
	})
	if err := a.SetMeta(t.Context(), "role=db"); err != nil {
		t.Fatal(err)
	}
	if meta := ga.Self().Meta; !strings.HasPrefix(meta, "role=db backbone=") {
		t.Errorf("the meta is %q", meta)
	}
	checkRequests(t, a)
	broadcast(t, a, 1, 20)
	expect(t, b, "ams", 1, 20)
	testutil.Eventually(t, "acknowledgment", func() bool {
		l := a.Links()[0]
		return l.Lag == 0 && l.Gateway == "ber" &&
			l.Heard >= 0
	})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ga.Broadcast(t.Context(), nil); err != nil {
		t.Errorf("the group has ended with the fleet: %v", err)
	}
}

func checkRequests(t *testing.T, a *fleet.Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if reply, err := a.Request(ctx, "ber", "load", []byte("now")); string(reply) != "ams/ams asks now" || err != nil {
		t.Errorf("%q, %v", reply, err)
	}
	var zone *fleet.ZoneError
	if _, err := a.Request(ctx, "ber", "load", []byte("bad")); !errors.As(err, &zone) ||
		zone.Err.Error() != "no such load" {
		t.Errorf("%v", err)
	}
	if _, err := a.Request(ctx, "ber", "other", nil); !errors.Is(err, pleach.ErrNoHandler) {
		t.Errorf("%v", err)
	}
	if _, err := a.Request(ctx, "nowhere", "load", nil); !errors.Is(err, fleet.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// The name of the group has to be the zone's.
func TestAttachOtherGroup(t *testing.T) {
	t.Parallel()
	g, err := pleach.Create(t.Context(), pleach.Config{Group: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var wrong *pleach.ConfigError
	if _, err := fleet.Attach(t.Context(), g, fleet.Config{Zone: "ams"}); !errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
}

// A member that is no delegate asks through one.
func TestRequestThroughDelegate(t *testing.T) {
	t.Parallel()
	members := start(t, map[string]int{"ams": 4, "ber": 1})
	connected(t, members)
	members["ber"][0].Handle("ping", func(_ context.Context, r fleet.Request) ([]byte, error) { return []byte(r.ID), nil })
	last := members["ams"][3]
	if last.Stats().Delegate {
		t.Fatal("it is a delegate")
	}
	testutil.Eventually(t, "reply", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reply, err := last.Request(ctx, "ber", "ping", nil)
		return err == nil && string(reply) == "ams3"
	})
}
