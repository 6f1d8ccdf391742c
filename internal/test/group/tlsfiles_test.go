package group_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// writeCredentials replaces the files of a member, as an agent that renews certificates does.
func writeCredentials(t *testing.T, dir string, c testutil.Credentials, authorities ...[]byte) {
	t.Helper()
	for name, data := range map[string][]byte{
		"cert.pem": c.Cert, "key.pem": c.Key,
		"ca.pem": slices.Concat(authorities...),
	} {
		if data == nil {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func tlsFiles(t *testing.T, dir string) *tls.Config {
	t.Helper()
	c, err := pleach.TLSFiles(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func awaitSize(t *testing.T, groups []*pleach.Group, size int) {
	t.Helper()
	for _, g := range groups {
		awaitView(t, g, "view of the right size", func(v pleach.View) bool { return v.Size() == size })
	}
}

// Certificates, and then the authority, are rotated while a group runs: messages go on,
// joiners with new certificates are accepted, and those with old ones are not.
func TestCertificatesRotate(t *testing.T) {
	old, next := testutil.NewCA(t), testutil.NewCA(t)
	oldCA, nextCA := old.Issue(t).CA, next.Issue(t).CA
	dirs := make([]string, 3)
	var groups []*pleach.Group
	for i := range dirs {
		dirs[i] = t.TempDir()
		writeCredentials(t, dirs[i], old.Issue(t), oldCA)
		c := pleach.Config{Group: groupName, Security: pleach.Security{TLS: tlsFiles(t, dirs[i])}}
		if i == 0 {
			groups = append(groups, member(t)(pleach.Create(t.Context(), c)))
		} else {
			groups = append(groups, member(t)(pleach.Join(t.Context(), c, groups[0].Self().Address)))
		}
	}
	awaitSize(t, groups, 3)
	round := 0
	goesOn := func() {
		t.Helper()
		again(t, groups, round)
		round++
	}
	joins := func(c testutil.Credentials, authorities ...[]byte) error {
		t.Helper()
		c.CA = slices.Concat(authorities...)
		config, err := c.TLS()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		g, err := pleach.Join(ctx, pleach.Config{Group: groupName, Security: pleach.Security{TLS: config}},
			groups[0].Self().Address)
		if err == nil {
			err = g.Close()
			awaitSize(t, groups, 3)
		}
		return err
	}
	goesOn()
	for _, step := range []struct {
		by, joiner  *testutil.CA
		authorities [][]byte
	}{
		{old, old, [][]byte{oldCA}},           // a new certificate
		{nil, next, [][]byte{oldCA, nextCA}},  // both authorities
		{next, next, [][]byte{oldCA, nextCA}}, // a certificate of the new one
		{nil, next, [][]byte{nextCA}},         // the old one is gone
	} {
		for _, dir := range dirs {
			var c testutil.Credentials
			if step.by != nil {
				c = step.by.Issue(t)
			}
			writeCredentials(t, dir, c, step.authorities...)
			time.Sleep(10 * time.Millisecond) // members differ for a while
			goesOn()
		}
		time.Sleep(1100 * time.Millisecond) // files are looked at once a second
		goesOn()
		if err := joins(step.joiner.Issue(t), step.authorities...); err != nil {
			t.Errorf("a joiner of the current authority: %v", err)
		}
		goesOn()
	}
	if groups[0].View().Number != 3+2*4 || groups[2].Err() != nil { // 4 joined and left
		t.Errorf("view %d, %v", groups[0].View().Number, groups[2].Err())
	}
	expired := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(-time.Minute)}
	for name, c := range map[string]testutil.Credentials{
		"old authority": old.Issue(t),
		"expired":       next.IssueNames(t, expired),
	} {
		err := joins(c, oldCA, nextCA)
		var join *pleach.JoinError
		if !errors.As(err, &join) || !join.Permanent || !strings.Contains(err.Error(), "tls: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	goesOn()
}

// Files that cannot be used do not replace those that can.
func TestTLSFilesKeepsTheLastGoodOnes(t *testing.T) {
	ca, dir := testutil.NewCA(t), t.TempDir()
	if _, err := pleach.TLSFiles("", "", ""); err == nil {
		t.Error("files that are not there")
	}
	writeCredentials(t, dir, ca.Issue(t), ca.Issue(t).CA)
	config := tlsFiles(t, dir)
	first, err := config.GetConfigForClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	writeCredentials(t, dir, testutil.Credentials{Cert: ca.Issue(t).Cert}) // without its key
	time.Sleep(1100 * time.Millisecond)
	if c, err := config.GetConfigForClient(nil); err != nil || c != first {
		t.Errorf("%p, %v, want %p", c, err, first)
	}
	writeCredentials(t, dir, ca.Issue(t), ca.Issue(t).CA)
	testutil.Eventually(t, "the new files", func() bool {
		c, err := config.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c != first
	})
}
