package pleach_test

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/testutil"
)

// A certificate that expires is told days before.
func TestCertificateExpires(t *testing.T) {
	ca := testutil.NewCA(t)
	dir := t.TempDir()
	write := func(end time.Time) *pleach.Config {
		c := ca.IssueNames(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: end})
		paths := make([]string, 3)
		for i, b := range [][]byte{c.Cert, c.Key, c.CA} {
			paths[i] = filepath.Join(dir, []string{"cert", "key", "ca"}[i])
			if err := os.WriteFile(paths[i], b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		config, err := pleach.TLSFiles(paths[0], paths[1], paths[2])
		if err != nil {
			t.Fatal(err)
		}
		return &pleach.Config{Group: "web", TLS: config}
	}
	soon := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	log := &testutil.LogBuffer{}
	c := write(soon)
	c.Logger = log.Logger()
	first, err := pleach.Create(t.Context(), *c)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Abort()
	log.Await(t, "certificate expires")
	if at := first.Status().CertificateExpires; !at.Equal(soon) {
		t.Errorf("expires %v, want %v", at, soon)
	}
}
