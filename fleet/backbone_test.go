package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
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
	if err := other.tell(t.Context(), "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if b := lead.findInZone(t.Context()); len(b.seeds()) > 0 || !b.announced {
		t.Errorf("the zone has the backbone %v", b.seeds())
	}
	if found, _ := lead.findBackbone(); len(found) == 0 {
		t.Error("no backbone was found")
	}
	if took := time.Since(began); took >= inspectTimeout {
		t.Errorf("it took %v, as long as an address that does not answer", took)
	}
}
