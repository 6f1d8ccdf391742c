package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// What operators ask of the group and not of an agent is in the audit log of the agent that carries it
// out, and so is what they have no right to: who, from where, what and the result.
func TestOperatorsAreInTheAuditLog(t *testing.T) {
	ca := testutil.NewCA(t)
	issue := func(path string) testutil.Credentials {
		u, err := url.Parse("spiffe://example.org/" + path)
		if err != nil {
			t.Fatal(err)
		}
		return ca.IssueNames(t, &x509.Certificate{URIs: []*url.URL{u}})
	}
	with := func(path string) *tls.Config {
		c, err := issue(path).TLS()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	dir, own := t.TempDir(), issue("pleach/web/a")
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	address := testutil.FreeAddresses(t, 1)[0]
	a := start(t, fmt.Sprintf("group: web\nid: a\nlisten: %s\nexpect: 1\ntls-ca: %s\ntls-cert: %s\ntls-key: %s\n",
		address, file("ca", own.CA), file("cert", own.Cert), file("key", own.Key)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var members []*pleach.Group
	for _, id := range []string{"b", "c", "d", "e"} {
		g, err := pleach.Join(ctx,
			pleach.Config{Group: "web", ID: id, Security: pleach.Security{TLS: with("pleach/web/" + id)}}, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		members = append(members, g)
	}
	operator := pleach.Config{Group: "web", Security: pleach.Security{TLS: with("pleach-operator/web")}}
	if _, err := pleach.Evict(ctx,
		pleach.Config{Group: "web", Security: pleach.Security{TLS: with("pleach-observer/web")}}, address, "e"); err == nil {
		t.Error("an observer evicts a member")
	}
	a.log.Await(t, "msg=audit", `who=spiffe://example.org/pleach-observer/web`, "from=127.", "action=evict", "what=e",
		"may not operate")
	if _, err := pleach.Evict(ctx, operator, address, "e"); err != nil {
		t.Fatal(err)
	}
	a.log.Await(t, "msg=audit", `who=spiffe://example.org/pleach-operator/web`, "from=127.", "action=evict", "what=e",
		"result=ok")
	a.log.Await(t, `msg="an operator acts on the group"`, "action=evict", "what=e",
		"certificate=[spiffe://example.org/pleach-operator/web]")
	var killing sync.WaitGroup
	for _, g := range members { // at once, so that the quorum is lost
		killing.Go(func() { _ = g.Abort() })
	}
	killing.Wait()
	for { // it may not be known yet
		if _, err := pleach.ForceView(ctx, operator, address); err == nil {
			break
		} else if !errors.Is(err, pleach.ErrRefused) {
			t.Fatal(err)
		}
	}
	a.log.Await(t, "msg=audit", `who=spiffe://example.org/pleach-operator/web`, "from=127.", "action=force-view", "what=a",
		"result=ok")
	if _, err := pleach.RaiseVersion(ctx, operator, address); err != nil {
		t.Error(err)
	}
}
