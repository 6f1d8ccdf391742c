package faults

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Case 45: a certificate expires tomorrow. That is told now, and no longer when its file has
// another one.
func TestCase45CertificateExpires(t *testing.T) {
	ca, dir := testutil.NewCA(t), t.TempDir()
	paths := []string{filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")}
	write := func(end time.Time) {
		c := ca.IssueNames(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: end})
		for i, b := range [][]byte{c.Cert, c.Key, c.CA} {
			if err := os.WriteFile(paths[i], b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	soon, later := time.Now().Add(24*time.Hour).Truncate(time.Second),
		time.Now().Add(24*365*time.Hour).Truncate(time.Second)
	write(soon)
	config, err := pleach.TLSFiles(paths[0], paths[1], paths[2])
	if err != nil {
		t.Fatal(err)
	}
	log := &testutil.LogBuffer{}
	g, err := pleach.Create(t.Context(), pleach.Config{
		Group: "faults", Security: pleach.Security{TLS: config},
		Logger: log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	log.Await(t, "certificate expires")
	if at := g.Status().CertificateExpires; !at.Equal(soon) {
		t.Errorf("expires %v, want %v", at, soon)
	}
	write(later)
	began := time.Now()
	for !g.Status().CertificateExpires.Equal(later) {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("expires %v, want %v, as the file says", g.Status().CertificateExpires, later)
		}
		time.Sleep(10 * time.Millisecond)
	}
	figures(t, map[string]any{"case": 45, "renewed_ms": time.Since(began).Milliseconds()})
}
