package security

// The table of docs/operate/security.md for processes that reach a member's port: a row of the output
// for each cell. local_linux_test.go has the table for clients of an agent, and holes_linux_test.go shows for
// each "no" that a member would otherwise let the actor in.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// cell is a "no" or "yes" of a table. Its name is SETTING/ACTOR/ACTION.
type cell struct {
	name string
	may  bool
}

// holeVariable has the names of the open holes, between commas.
const holeVariable = "PLEACH_SECURITY_HOLE"

// planted reports whether this binary has holes. It tries only what is not allowed then.
func planted() bool { return os.Getenv(holeVariable) != "" }

// actor is a process with what it has, and what it may do: (o)bserve, (j)oin under its own
// ID and address, join under the ID of a (m)ember, (f)orce views and raise versions, and
// (s)peak as a member that it is not.
type actor struct {
	name   string
	config pleach.Config
	host   string // on which it runs
	may    string
	// guesses says that the actor has not been a member, and does not know the nonces of members:
	// nothing else keeps it from speaking as one.
	guesses bool
}

// attempts are the columns of the table.
var attempts = []struct {
	name string
	try  func(t *testing.T, a *actor, g *pleach.Group) error
}{
	{"observe", func(t *testing.T, a *actor, g *pleach.Group) error {
		_, err := pleach.Inspect(timed(t, 5*time.Second), a.config, g.Self().Address)
		return err
	}},
	{"join", func(t *testing.T, a *actor, g *pleach.Group) error {
		id := "evil"
		if a.host != "127.0.0.1" {
			id += " there" // an ID stays on its host
		}
		return tryJoin(t, a, g, id, a.allows("join"))
	}},
	{"member", func(t *testing.T, a *actor, g *pleach.Group) error {
		err := tryJoin(t, a, g, "a", a.allows("member"))
		if errors.As(err, new(*pleach.IdentityInUseError)) {
			return nil // let in, and the ID is in use
		}
		return err
	}},
	{"force", func(t *testing.T, a *actor, g *pleach.Group) error {
		c := tcp.Config{Group: a.config.Group, TLS: a.config.Security.TLS, Secret: a.config.Security.Secret}
		if c.TLS != nil {
			c.Verify = func(tcp.Claim) error { return nil }
		}
		b, err := tcp.Request(timed(t, 5*time.Second), c, g.Self().Address,
			control.Encode(control.Raise{Version: wire.Newest()}))
		if err == nil && strings.Contains(string(b), admission.ErrRight.Error()) {
			err = admission.ErrRight
		}
		return err
	}},
	{"speak", func(t *testing.T, a *actor, g *pleach.Group) error {
		// Rank 1 is b. Whatever the group tells this actor without letting it join is tried.
		b := g.View().Members()[1]
		nonces := append(learnNonces(t, a, g), 7)
		if !a.guesses {
			nonces = append(nonces, b.Nonce)
		}
		err := errors.New("nothing was tried")
		for _, nonce := range nonces {
			h := wire.Hello{
				Group: a.config.Group, From: 1, To: 0, Incarnation: b.Incarnation, Attempt: math.MaxUint64,
				Process: nonce,
			}
			h.Code = wire.NewKey(a.config.Security.Secret, group).HelloCode(&h)
			var answer wire.Hello
			answer, err = sayHello(dial(t, g.Self().Address, a.config.Security.TLS), &h)
			if err == nil && answer.Status != wire.Accepted {
				err = errors.New(answer.Status.String())
			}
			if err == nil {
				return nil
			}
		}
		return err
	}},
}

// allows reports whether an actor may do what a column is.
func (a *actor) allows(attempt string) bool { return strings.Contains(a.may, attempt[:1]) }

// learnNonces returns the numbers in the place of b's nonce in every reply that needs no more
// than the right to observe.
func learnNonces(t *testing.T, a *actor, g *pleach.Group) (nonces []uint64) {
	c := tcp.Config{Group: a.config.Group, TLS: a.config.Security.TLS, Secret: a.config.Security.Secret}
	if c.TLS != nil {
		c.Verify = func(tcp.Claim) error { return nil }
	}
	learn := func(v *membership.View) {
		if m, ok := v.Member(1); ok {
			nonces = append(nonces, m.Nonce)
		}
	}
	for _, request := range []control.Request{control.View{}, control.Introduce{}} {
		b, err := tcp.Request(timed(t, time.Second), c, g.Self().Address, control.Encode(request))
		if err != nil {
			continue
		}
		body, err := control.Open(b)
		if err != nil {
			continue
		}
		if _, ok := request.(control.View); ok {
			if r, err := control.DecodeView(body); err == nil {
				learn(&r.View)
			}
		} else if i, err := control.DecodeIntroduction(body); err == nil && i.View != nil {
			learn(i.View)
			for m := range i.Decisions.Added() {
				if m.Rank == 1 {
					nonces = append(nonces, m.Nonce)
				}
			}
		}
	}
	return nonces
}

// tryJoin joins, and leaves. A candidate that is refused by something that might change tries again
// until its time is over.
func tryJoin(t *testing.T, a *actor, g *pleach.Group, id string, may bool) error {
	c := a.config
	c.ID, c.Listen = id, a.host+":0"
	patience := 3 * time.Second
	if may {
		patience = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	joined, err := pleach.Join(ctx, c, g.Self().Address)
	if err == nil {
		err = joined.Leave(t.Context())
	}
	return err
}

// lying returns the config of a process that presents its certificate to everybody, whatever it and
// the other side are for. A real one would refuse itself.
func lying(c *tls.Config) *tls.Config {
	certificate := &c.Certificates[0]
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	return c
}

// setting is a way to protect a group, with the actors that come to it.
type setting struct {
	name   string
	member func(id string) pleach.Config
	actors []actor
}

// networkTable is the table of processes that reach the port of a member.
func networkTable(t testing.TB) []setting {
	ca, other := testutil.NewCA(t), testutil.NewCA(t)
	secret := []byte("the group's secret")
	with := func(c *tls.Config, secret []byte) pleach.Config {
		return pleach.Config{Group: group, Security: pleach.Security{TLS: c, Secret: secret}}
	}
	issued := func(by *testutil.CA, template x509.Certificate) pleach.Config {
		c := config(t, by.IssueNames(t, &template))
		c.RootCAs = hostTLS(t, ca, "127.0.0.1").RootCAs // everybody knows the group's authority
		evil := with(lying(c), nil)
		evil.Security.HostCertificates = true
		return evil
	}
	const here, there = "127.0.0.1", "127.0.0.3"
	ip := func(host string) x509.Certificate { return x509.Certificate{IPAddresses: []net.IP{net.ParseIP(host)}} }
	path := func(path string) x509.Certificate {
		u, err := url.Parse("spiffe://example.org/" + path)
		if err != nil {
			t.Fatal(err)
		}
		return x509.Certificate{URIs: []*url.URL{u}}
	}
	all := func() (c x509.Certificate) { // for everything
		for _, p := range []string{"pleach/web/a", "pleach/web/b", "pleach/web/evil", "pleach-operator/web"} {
			c.URIs = append(c.URIs, path(p).URIs[0])
		}
		return c
	}
	host := func(address string) pleach.Config { return issued(ca, ip(address)) }
	uri := func(text string) pleach.Config { return issued(ca, path(text)) }
	expired := func(c x509.Certificate) pleach.Config {
		c.NotAfter = time.Now().Add(-time.Minute)
		return issued(ca, c)
	}
	server := func(c x509.Certificate) pleach.Config {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		return issued(ca, c)
	}
	hosts := func(string) pleach.Config { return with(hostTLS(t, ca, here), nil) }
	uris := func(id string) pleach.Config { return with(uriTLS(t, ca, "pleach/web/"+id), nil) }
	both := func(id string) pleach.Config {
		c := uris(id)
		c.Security.HostCertificates = true
		return c
	}
	unnamed := pleach.Config{Group: "another"}
	return []setting{
		{"none", func(string) pleach.Config { return with(nil, nil) }, []actor{
			{name: "stranger", config: unnamed, host: here},
			{name: "who knows the name", config: with(nil, nil), host: here, may: "ojmf", guesses: true},
		}},
		{"secret", func(string) pleach.Config { return with(nil, secret) }, []actor{
			{name: "stranger", config: with(nil, nil), host: here},
			{name: "other group", config: with(nil, []byte("the secret of another group")), host: here},
			{name: "who knows the secret", config: with(nil, secret), host: here, may: "ojmf", guesses: true},
		}},
		{"TLS hosts", hosts, []actor{
			{name: "stranger", config: with(nil, nil), host: here},
			{name: "other authority", config: issued(other, ip(here)), host: here},
			{name: "expired", config: expired(ip(here)), host: here},
			{name: "server usage only", config: server(ip(here)), host: here},
			{name: "other host", config: host(there), host: there, may: "oj"},
			{name: "member's host", config: host(here), host: here, may: "ojmf", guesses: true},
			{name: "operator", config: uri("pleach-operator/web"), host: here, may: "of"},
			{name: "observer", config: uri("pleach-observer/web"), host: here, may: "o"},
			{name: "member of another group", config: uri("pleach/other/evil"), host: here},
		}},
		{"TLS URIs", uris, []actor{
			{name: "stranger", config: with(nil, nil), host: here},
			{name: "other authority", config: issued(other, all()), host: here},
			{name: "expired", config: expired(all()), host: here},
			{name: "server usage only", config: server(all()), host: here},
			{name: "other group", config: uri("pleach/other/evil"), host: here},
			{name: "other group, ID of a member", config: uri("pleach/other/a"), host: here},
			{name: "other group's operator", config: uri("pleach-operator/other"), host: here},
			{name: "other group's observer", config: uri("pleach-observer/other"), host: here},
			{name: "candidate", config: uri("pleach/web/evil"), host: here, may: "oj"},
			{name: "member", config: uri("pleach/web/a"), host: here, may: "omf"},
			{name: "operator", config: uri("pleach-operator/web"), host: here, may: "of"},
			{name: "observer", config: uri("pleach-observer/web"), host: here, may: "o"},
			{name: "mesh workload", config: uri("ns/shop/sa/cart"), host: here},
			{name: "without names", config: issued(ca, x509.Certificate{}), host: here},
			{name: "web server of the host", config: host(here), host: here},
			{name: "web server elsewhere", config: host(there), host: there},
			{name: "host called like a member", config: issued(ca, x509.Certificate{DNSNames: []string{"a", "b"}}), host: here},
		}},
		{"TLS URIs, host certificates accepted", both, []actor{
			{name: "candidate", config: uri("pleach/web/evil"), host: here, may: "oj"},
			{name: "other host", config: host(there), host: there, may: "oj"},
			{name: "member's host", config: host(here), host: here, may: "ojmf", guesses: true},
		}},
	}
}

// cellsOf returns the cells of a table.
func cellsOf(table []setting) (cells []cell) {
	for _, s := range table {
		for i := range s.actors {
			for _, attempt := range attempts {
				cells = append(cells, cell{s.name + "/" + s.actors[i].name + "/" + attempt.name, s.actors[i].allows(attempt.name)})
			}
		}
	}
	return cells
}

func TestSecurityTable(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, s := range networkTable(t) {
		for _, a := range s.actors {
			all.Go(func() { // not t.Parallel: most of the time is spent waiting
				t.Run(s.name+"/"+a.name, func(t *testing.T) {
					first := s.begin(t)
					for _, attempt := range attempts {
						may := a.allows(attempt.name)
						if planted() && may {
							continue // it would show nothing
						}
						t.Run(attempt.name, func(t *testing.T) {
							if err := attempt.try(t, &a, first); (err == nil) != may {
								t.Errorf("allowed: %v, want %v: %v", err == nil, may, err)
							}
						})
					}
				})
			})
		}
	}
}

// begin makes a group of two members, a and b.
func (s *setting) begin(t *testing.T) *pleach.Group {
	t.Helper()
	c := s.member("a")
	c.ID = "a"
	first := create(t, c)
	c = s.member("b")
	c.ID = "b"
	join(t, c, first.Self().Address)
	return first
}
