package fleet_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Zones find each other with the URIs that docs/guide/fleet.md names: one for the zone, one
// for the backbone, and none for another zone (case 96).
func TestZonesMeetWithURICertificates(t *testing.T) {
	t.Parallel()
	ca := testutil.NewCA(t)
	addresses := testutil.FreeAddresses(t, 2)
	seeds := map[string][]string{"fra": {addresses[0]}, "ber": {addresses[1]}}
	other := map[string]string{"fra": "ber", "ber": "fra"}
	fleets := make([]*fleet.Fleet, 2)
	for i, zone := range []string{"fra", "ber"} {
		id := zone + "0"
		f, err := fleet.Join(t.Context(), fleet.Config{
			Name: "shop", Zone: zone, Seeds: map[string][]string{other[zone]: seeds[other[zone]]},
			Group: pleach.Config{
				ID: id, Listen: addresses[i],
				Security: pleach.Security{TLS: withURIs(t, ca, "shop/"+zone, id, "shop/", zone+"/"+id)},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Abort() })
		fleets[i] = f
	}
	testutil.Eventually(t, "the zones meet", func() bool {
		return len(fleets[0].Zones()) == 2 &&
			len(fleets[1].Zones()) == 2
	})
}

// withURIs returns the config of a process whose certificate has the URI of each pair of a
// group and an ID.
func withURIs(t *testing.T, ca *testutil.CA, pairs ...string) *tls.Config {
	t.Helper()
	c := &x509.Certificate{}
	for ; len(pairs) > 0; pairs = pairs[2:] {
		u, err := url.Parse("spiffe://example.org/pleach/" + url.PathEscape(pairs[0]) + "/" + url.PathEscape(pairs[1]))
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	config, err := ca.IssueNames(t, c).TLS()
	if err != nil {
		t.Fatal(err)
	}
	return config
}
