package security

// The table of docs/operate/security.md: a row of the output for each cell.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"strings"
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

// actor is a process with what it has, and what it may do: (o)bserve, (j)oin under its own
// ID and address, join under the ID of a (m)ember, (f)orce views and raise versions, and
// (s)peak as a member that it is not.
type actor struct {
	name   string
	config pleach.Config
	host   string // on which it runs
	may    string
	id     string // under which it joins
}

// attempts are the columns of the table.
var attempts = map[string]func(t *testing.T, a *actor, g *pleach.Group) error{
	"o observe": func(t *testing.T, a *actor, g *pleach.Group) error {
		_, err := pleach.Inspect(timed(t, 5*time.Second), a.config, g.Self().Address)
		return err
	},
	"j join": func(t *testing.T, a *actor, g *pleach.Group) error { return tryJoin(t, a, g, a.id) },
	"m join as a member": func(t *testing.T, a *actor, g *pleach.Group) error {
		err := tryJoin(t, a, g, "a")
		if errors.As(err, new(*pleach.IdentityInUseError)) {
			return nil // let in, and the ID is in use
		}
		return err
	},
	"f force and raise": func(t *testing.T, a *actor, g *pleach.Group) error {
		c := tcp.Config{Group: a.config.Group, TLS: a.config.TLS, Secret: a.config.Secret}
		if c.TLS != nil {
			c.Verify = func(tcp.Claim) error { return nil }
		}
		b, err := tcp.Request(timed(t, 5*time.Second), c, g.Self().Address, control.Encode(control.Raise{Version: wire.Newest()}))
		if err == nil && strings.Contains(string(b), admission.ErrRight.Error()) {
			err = admission.ErrRight
		}
		return err
	},
	"s speak as a member": func(t *testing.T, a *actor, g *pleach.Group) error {
		// Rank 1 is b. Whatever the group tells this actor without letting it join is tried.
		b := g.View().Members()[1]
		err := errors.New("nothing was tried")
		for _, nonce := range append(learnNonces(t, a, g), 7) {
			h := wire.Hello{Group: a.config.Group, From: 1, To: 0, Incarnation: b.Incarnation, Attempt: math.MaxUint64, Process: nonce}
			h.Code = wire.NewKey(a.config.Secret, group).HelloCode(&h)
			var answer wire.Hello
			answer, err = sayHello(dial(t, g.Self().Address, a.config.TLS), &h)
			if err == nil && answer.Status != wire.Accepted {
				err = errors.New(answer.Status.String())
			}
			if err == nil {
				return nil
			}
		}
		return err
	},
}

// learnNonces returns the numbers in the place of b's nonce in every reply that needs no more
// than the right to observe.
func learnNonces(t *testing.T, a *actor, g *pleach.Group) (nonces []uint64) {
	c := tcp.Config{Group: a.config.Group, TLS: a.config.TLS, Secret: a.config.Secret}
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

// tryJoin joins, and leaves.
func tryJoin(t *testing.T, a *actor, g *pleach.Group, id string) error {
	c := a.config
	c.ID, c.Listen = id, a.host+":0"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	joined, err := pleach.Join(ctx, c, g.Self().Address)
	if err == nil {
		err = joined.Leave(t.Context())
	}
	return err
}

func TestSecurityTable(t *testing.T) {
	ca, other := testutil.NewCA(t), testutil.NewCA(t)
	secret := []byte("the group's secret")
	with := func(c *tls.Config, secret []byte) pleach.Config {
		return pleach.Config{Group: group, TLS: c, Secret: secret}
	}
	host := func(ip string) pleach.Config { return with(hostTLS(t, ca, ip), nil) }
	uri := func(path string) pleach.Config { return with(uriTLS(t, ca, path), nil) }
	names := func(c x509.Certificate) pleach.Config { return with(config(t, ca.IssueNames(t, &c)), nil) }
	const here, there = "127.0.0.1", "127.0.0.3"
	unnamed := pleach.Config{Group: "another"}
	for _, setting := range []struct {
		name   string
		member func(id string) pleach.Config
		actors []actor
	}{
		{"none", func(string) pleach.Config { return with(nil, nil) }, []actor{
			{name: "stranger", config: unnamed, host: here, may: ""},
			{name: "who knows the name", config: with(nil, nil), host: here, may: "ojmf"},
		}},
		{"secret", func(string) pleach.Config { return with(nil, secret) }, []actor{
			{name: "stranger", config: with(nil, nil), host: here, may: ""},
			{name: "other group", config: with(nil, []byte("another secret")), host: here, may: ""},
			{name: "who knows the secret", config: with(nil, secret), host: here, may: "ojmf"},
		}},
		{"TLS hosts", func(string) pleach.Config { return host(here) }, []actor{
			{name: "stranger", config: with(nil, nil), host: here, may: ""},
			{name: "other authority", config: with(hostTLS(t, other, here), nil), host: here, may: ""},
			{name: "other host", config: host(there), host: there, may: "oj"},
			{name: "member's host", config: host(here), host: here, may: "ojmf"},
			{name: "operator", config: uri("pleach-operator/web"), host: here, may: "of"},
		}},
		{"TLS URIs", func(id string) pleach.Config { return uri("pleach/web/" + id) }, []actor{
			{name: "stranger", config: with(nil, nil), host: here, may: ""},
			{name: "other authority", config: with(uriTLS(t, other, "pleach/web/evil"), nil), host: here, may: ""},
			{name: "other group", config: uri("pleach/other/evil"), host: here, may: ""},
			{name: "other group's operator", config: uri("pleach-operator/other"), host: here, may: ""},
			{name: "candidate", config: uri("pleach/web/evil"), host: here, may: "oj"},
			{name: "member", config: uri("pleach/web/a"), host: here, may: "omf"},
			{name: "operator", config: uri("pleach-operator/web"), host: here, may: "of"},
			{name: "observer", config: uri("pleach-observer/web"), host: here, may: "o"},
			{name: "other group's observer", config: uri("pleach-observer/other"), host: here, may: ""},
			{name: "mesh workload", config: uri("ns/shop/sa/cart"), host: here, may: ""},
			{name: "without names", config: names(x509.Certificate{}), host: here, may: ""},
			{name: "web server of the host", config: host(here), host: here, may: ""},
			{name: "web server elsewhere", config: host(there), host: there, may: ""},
			{name: "host called like a member", config: names(x509.Certificate{DNSNames: []string{"a", "b"}}), host: here, may: ""},
		}},
		{"TLS URIs, host certificates accepted", func(id string) pleach.Config {
			c := uri("pleach/web/" + id)
			c.HostCertificates = true
			return c
		}, []actor{
			{name: "candidate", config: uri("pleach/web/evil"), host: here, may: "oj"},
			{name: "other host", config: host(there), host: there, may: "oj"},
			{name: "member's host", config: host(here), host: here, may: "ojmf"},
		}},
	} {
		c := setting.member("a")
		c.ID = "a"
		first := create(t, c)
		c = setting.member("b")
		c.ID = "b"
		join(t, c, first.Self().Address)
		for _, a := range setting.actors {
			a.id = "evil"
			if a.host == there {
				a.id = "evil there" // an ID stays on its host
			}
			for what, try := range attempts {
				t.Run(fmt.Sprintf("%s/%s/%s", setting.name, a.name, what[2:]), func(t *testing.T) {
					may := strings.Contains(a.may, what[:1])
					if err := try(t, &a, first); (err == nil) != may {
						t.Errorf("allowed: %v, want %v: %v", err == nil, may, err)
					}
				})
			}
		}
	}
}
