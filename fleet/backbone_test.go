package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/backbone"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The lead of a zone that was cut off finds the backbone by other zones, although the
// delegates of its own zone have left theirs and nobody answers at their addresses.
func TestLeadFindsBackboneBesideStaleAddresses(t *testing.T) {
	t.Parallel()
	seeds := map[string][]string{}
	start := func(zone string, i int) *Fleet {
		f, err := Join(t.Context(), Config{Zone: zone, Seeds: seeds, Group: pleach.Config{ID: fmt.Sprint(zone, i)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Abort() })
		seeds[zone] = append(seeds[zone], f.Zone().Self().Address)
		return f
	}
	fra, lead, other := start("fra", 0), start("ber", 0), start("ber", 1)
	testutil.Eventually(t, "a backbone", func() bool {
		return fra.Stats().Delegate && lead.Stats().Delegate && other.Stats().Delegate
	})
	const stale = "127.0.0.1:1"
	if err := other.tell(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	const timeout = backbone.Time(5 * time.Second)
	began := time.Now()
	if b := lead.findAt(t.Context(), []string{stale}, timeout/5); len(b.View.Members) > 0 {
		t.Errorf("the zone has the backbone %v", b.View)
	}
	b := lead.findIn(t.Context(), &backbone.AskZone{Zone: "fra", Timeout: timeout})
	if len(b.View.Members) == 0 || !b.View.Quorum || !b.Reachable || !b.Announced {
		t.Errorf("no backbone was found: %+v", b)
	}
	b = lead.findIn(t.Context(), &backbone.AskZone{Zone: "muc", Known: b.Asked, Timeout: timeout})
	if len(b.View.Members) == 0 || b.Reachable || b.Announced {
		t.Errorf("no backbone was found at addresses that were known: %+v", b)
	}
	if took := time.Since(began); took >= time.Duration(timeout) {
		t.Errorf("it took %v, as long as an address that does not answer", took)
	}

	session := func() *session {
		lead.mu.Lock()
		defer lead.mu.Unlock()
		return lead.backbone
	}
	first := session()
	first.end()
	testutil.Eventually(t, "the lead in the backbone again", func() bool {
		s := session()
		return s != nil && s != first && s.group.View().Size() >= 2
	})
	if a, b := first.group.Self().Address, session().group.Self().Address; a != b {
		t.Errorf("it listens at %s, and has listened at %s, which others know", b, a)
	}
}
