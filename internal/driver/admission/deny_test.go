package admission

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/access"
)

// replace replaces a file as a whole, and lets its follower look again.
func replace[T any](t *testing.T, f *followed[T], text string) {
	t.Helper()
	path := f.paths[0]
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	f.looked = time.Now().Add(-reloadInterval)
}

// An entry denies the certificate with a serial number, the member with an ID, however its
// certificate names it, and the certificate with a URI; and nothing else.
func TestDeny(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deny")
	if _, err := DenyFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	text := "# stolen on Monday\n\nserial 0A:1b\n  serial FF \nid web 2\nuri spiffe://x/pleach-operator/shop\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := DenyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	with := func(serial int64, names ...string) *x509.Certificate {
		c := certificate(t, names...)
		c.SerialNumber = big.NewInt(serial)
		return c
	}
	for _, test := range []struct {
		leaf *x509.Certificate
		id   string
		want string
	}{
		{with(0xa1b), "", "serial a1b"},
		{with(0xff, "spiffe://x/pleach/shop/web-1"), "web-1", "serial ff"},
		{with(1, "spiffe://x/pleach/shop/web%202"), "", "id web 2"},
		{with(1, "web 2"), "", "id web 2"},
		{with(1, "10.0.0.1"), "web 2", "id web 2"},
		{with(1, "spiffe://x/pleach-operator/shop"), "", "uri spiffe://x/pleach-operator/shop"},
		{with(0x1b, "spiffe://x/pleach-operator/bank", "spiffe://x/pleach/shop/web"), "web", ""},
		{certificate(t, "10.0.0.1"), "", ""},
	} {
		err := d.Check(test.leaf, test.id)
		if errors.Is(err, ErrRevoked) != (test.want != "") || err != nil &&
			!strings.Contains(err.Error(), fmt.Sprintf("%q", test.want)) {
			t.Errorf("%v as %q: %v, want %q", NamesOf(test.leaf), test.id, err, test.want)
		}
	}
	if !d.Names("web 2") || d.Names("web") || (*Deny)(nil).Names("web 2") || (*Deny)(nil).Check(with(0xff), "") != nil {
		t.Error("names")
	}
	door := &Authorizer{Group: "shop", TLS: true, Deny: d}
	for _, right := range []access.Right{access.Observe, access.Enter} {
		if err := door.Check([]*x509.Certificate{with(0xff, "spiffe://x/pleach/shop/web-1")}, right,
			access.Claim{}); !errors.Is(err, ErrRevoked) {
			t.Errorf("%v: %v", right, err)
		}
	}
}

// A list with a mistake changes nothing and is reported, until it is corrected.
func TestDenyKeepsTheLastGoodList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deny")
	if err := os.WriteFile(path, []byte("id a"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := DenyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, err := d.Look()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"id a\nserial xyz", "web-2", "serial", "serial -1", "name web-2",
		"id a\n" + strings.Repeat("#", maxDeny),
	} {
		replace(t, &d.files, bad)
		if list, err := d.Look(); err == nil || list != first || !d.Names("a") || !strings.Contains(err.Error(), path) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	d.files.looked = time.Time{}
	if _, err := d.Look(); !errors.Is(err, os.ErrNotExist) || !d.Names("a") {
		t.Errorf("without the file: %v", err)
	}
	replace(t, &d.files, "id bb")
	if list, err := d.Look(); err != nil || list == first || d.Names("a") || !d.Names("bb") {
		t.Errorf("corrected: %v", err)
	}
}

// A secret file has one to four secrets, none of which could be guessed. One that changes to
// something else changes nothing.
func TestSecretFile(t *testing.T) {
	const one, two = "the first secret of all", "the second secret of all"
	for text, want := range map[string][]string{
		one: {one}, one + "\n": {one}, "\n" + one + "\r\n\n" + two: {one, two},
		"": nil, "\n\n": nil, "short": nil, one + "\nshort": nil, strings.Repeat(one+"\n", MaxSecrets+1): nil,
	} {
		got, err := ParseSecrets([]byte(text))
		if (err == nil) != (want != nil) ||
			!slices.EqualFunc(got, want, func(a []byte, b string) bool { return string(a) == b }) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := SecretFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, &s.files, "short")
	if all, err := s.Look(); err == nil || len(all) != 1 || string(all[0]) != one {
		t.Errorf("%q, %v", all, err)
	}
	replace(t, &s.files, two+"\n"+one)
	if all := s.Current(); len(all) != 2 || string(all[0]) != two {
		t.Errorf("%q", all)
	}
	if _, err := SecretFile(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}
