package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

func TestViewChange(t *testing.T) {
	a, b := pleach.Member{Rank: 0, Identity: "a", Incarnation: 1}, pleach.Member{Rank: 2, Identity: "b", Incarnation: 2}
	back := pleach.Member{Rank: 2, Identity: "b", Incarnation: 3}
	evil := pleach.Member{Rank: 1, Identity: "\x1b[2J"}
	view := func(number uint64, members ...pleach.Member) pleach.View {
		return pleach.View{Number: number, Slots: 3, Members: members}
	}
	for _, c := range []struct {
		before, now pleach.View
		want        string
	}{
		{view(1, a, b), view(2, a), "view 2: 1 member, 2 holes -2 (b)"},
		{view(2, a), view(3, a, b), "view 3: 2 members, 1 hole +2 (b)"},
		{view(3, a, b), view(5, a, back), "view 5: 2 members, 1 hole +2 (b)"},
		{view(1, a, b), view(2, a, evil), `view 2: 2 members, 1 hole -2 (b) +1 ("\x1b[2J")`},
	} {
		if got := viewChange(c.before, c.now); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got := holes(view(1, b)); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("holes %v", got)
	}
}

// Rows are 32 ranks long, as those of pleach tree.
func TestViewTableRing(t *testing.T) {
	text := viewTable(pleach.View{Slots: 33, Members: []pleach.Member{{Rank: 0}, {Rank: 32}}})
	_, ring, _ := strings.Cut(text, "\n\nring\n")
	rows := strings.Split(ring, "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "    0  ● ○") || rows[1] != "   32  ●" {
		t.Errorf("%q", rows)
	}
}

// A look at a group that uses TLS takes a certificate of its authority.
func TestMembersTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "me.pem"), filepath.Join(dir, "me.key")
	writeCertificate(t, certificate, key)
	flags := groupFlags{group: "secret", ca: certificate, cert: certificate, key: key}
	c, err := flags.config()
	if err != nil {
		t.Fatal(err)
	}
	c.Found = true
	founder, err := pleach.Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer founder.Close()
	address := founder.View().Members[0].Address
	out := printed(t, "members", address, "--group", "secret", "--tls-ca", certificate, "--tls-cert", certificate, "--tls-key", key)
	if !strings.HasPrefix(out, "view 1: 1 member\n") {
		t.Error(out)
	}
	if _, err := look(t.Context(), pleach.Config{Group: "secret"}, []string{address}); err == nil {
		t.Error("a stranger may look")
	}
}

// writeCertificate writes one that is its own authority.
func writeCertificate(t *testing.T, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		t.Fatal(err)
	}
}
