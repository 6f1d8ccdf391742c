package faults

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// groupSecret is that of the groups that have one.
var groupSecret = []byte("sixteen bytes or more")

// certificateFor is a config whose certificate names a member, and an IP address if
// that is not nil.
func certificateFor(t *testing.T, ca *testutil.CA, id string, ip net.IP) *tls.Config {
	t.Helper()
	template := new(x509.Certificate)
	if id != "" {
		template.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/pleach/faults/" + id}}
	}
	if ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	c, err := ca.IssueNames(t, template).TLS()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// grow creates a group of members that join one after the other, by their IDs.
func grow(t *testing.T, size int, config func(id string) pleach.Config) []*pleach.Group {
	t.Helper()
	var groups []*pleach.Group
	for i := range size {
		c := config(fmt.Sprint("member-", i))
		c.Group, c.ID = "faults", fmt.Sprint("member-", i)
		var g *pleach.Group
		var err error
		if i == 0 {
			g, err = pleach.Create(t.Context(), c)
		} else {
			g, err = pleach.Join(t.Context(), c, groups[0].Self().Address)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		groups = append(groups, g)
	}
	for _, g := range groups {
		for v := range g.Views(t.Context()) {
			if v.Size() == size {
				break
			}
		}
	}
	return groups
}

// expectNoChange fails if a group has another view, or a member does not receive.
func expectNoChange(t *testing.T, groups []*pleach.Group, view uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, g := range groups {
		if err := g.Broadcast(ctx, []byte("still here")); err != nil {
			t.Error(err)
		}
		if _, err := g.WaitStable(ctx); err != nil {
			t.Error(err)
		}
		if v := g.View(); v.Number != view || v.Size() != len(groups) {
			t.Errorf("rank %d is in view %d with %d members, want view %d with %d", g.Rank(), v.Number, v.Size(), view,
				len(groups))
		}
	}
}

// Case 14: the certificate of a process does not name its host. It learns so from Join,
// with what is missing, and is no member that others cannot dial.
func TestCase14CertificateWithoutTheHost(t *testing.T) {
	ca := testutil.NewCA(t)
	groups := grow(t, 2,
		func(string) pleach.Config { return pleach.Config{Security: pleach.Security{TLS: ca.Config(t, ca)}} })
	view := groups[0].View().Number
	for name, c := range map[string]*tls.Config{
		"another host":   certificateFor(t, ca, "", net.IPv4(10, 9, 8, 7)),
		"another member": certificateFor(t, ca, "member-0", net.IPv4(127, 0, 0, 1)),
	} {
		began := time.Now()
		_, err := pleach.Join(t.Context(), pleach.Config{Group: "faults", ID: "joiner", Security: pleach.Security{TLS: c}},
			groups[0].Self().Address)
		var wrong *pleach.CertificateError
		if !errors.As(err, &wrong) || wrong.ID != "joiner" || wrong.Host != "127.0.0.1" || len(wrong.ValidFor) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		figures(t, map[string]any{
			"case": 14, "certificate": name, "error_ms": time.Since(began).Milliseconds(),
			"error": fmt.Sprint(err),
		})
	}
	expectNoChange(t, groups, view)
}

// Case 15: Join fails for a reason that does not pass. It returns at once, although its
// context allows to wait.
func TestCase15PermanentErrorsAreReturnedAtOnce(t *testing.T) {
	ca := testutil.NewCA(t)
	plain := grow(t, 1, func(string) pleach.Config { return pleach.Config{} })[0].Self().Address
	secret := grow(t, 1,
		func(string) pleach.Config { return pleach.Config{Security: pleach.Security{Secret: groupSecret}} })[0].Self().Address
	secure := grow(t, 1,
		func(string) pleach.Config {
			return pleach.Config{Security: pleach.Security{TLS: ca.Config(t, ca)}}
		})[0].Self().Address
	for name, test := range map[string]struct {
		seed   string
		config pleach.Config
		want   error
	}{
		"another group": {plain, pleach.Config{Group: "other"}, tcp.ErrHello},
		"another authority": {
			secure,
			pleach.Config{Group: "faults", Security: pleach.Security{TLS: ca.Config(t, testutil.NewCA(t))}},
			nil,
		},
		"no secret": {secret, pleach.Config{Group: "faults"}, tcp.ErrSecret},
		"another secret": {
			secret,
			pleach.Config{Group: "faults", Security: pleach.Security{Secret: []byte("another of 16 bytes")}},
			tcp.ErrSecret,
		},
		"secret of its own": {
			plain,
			pleach.Config{Group: "faults", Security: pleach.Security{Secret: groupSecret}},
			tcp.ErrSecret,
		},
		"no port": {plain, pleach.Config{Group: "faults", Listen: plain}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			_, err := pleach.Join(ctx, test.config, test.seed)
			var join *pleach.JoinError
			if err == nil || ctx.Err() != nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v at once", err, test.want)
			}
			if errors.As(err, &join) && !join.Permanent {
				t.Errorf("not permanent: %v", err)
			}
			figures(t, map[string]any{"case": 15, "cause": name, "error_ms": time.Since(began).Milliseconds()})
		})
	}
}

// attacker says a Hello to a member and reports whether it was accepted.
func attacker(t *testing.T, address string, h wire.Hello, config *tls.Config) (net.Conn, bool) {
	t.Helper()
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	c := raw
	if config != nil {
		config = config.Clone()
		config.InsecureSkipVerify = true // an attacker verifies nothing
		c = tls.Client(raw, config)
	}
	if _, err := c.Write(wire.AppendFrame(nil, wire.AppendHello(nil, &h))); err != nil {
		return raw, false
	}
	body, err := wire.NewReader(c, wire.MaxHelloFrame).Next()
	if err != nil {
		return raw, false
	}
	answer, err := wire.DecodeHello(body)
	return raw, err == nil && answer.Status == wire.Accepted
}

// Case 27: a process that is no member says that it is rank 2, in an incarnation later
// than any. Without the secret, or with the certificate of another member, that has no
// effect.
func TestCase27ClaimsNeedProof(t *testing.T) {
	ca := testutil.NewCA(t)
	loopback := net.IPv4(127, 0, 0, 1)
	for name, test := range map[string]struct {
		config  func(id string) pleach.Config
		insider *tls.Config
	}{
		"secret": {func(string) pleach.Config { return pleach.Config{Security: pleach.Security{Secret: groupSecret}} }, nil},
		"certificate": {func(id string) pleach.Config {
			return pleach.Config{Security: pleach.Security{TLS: certificateFor(t, ca, id, loopback)}}
		}, certificateFor(t, ca, "member-9", loopback)},
	} {
		t.Run(name, func(t *testing.T) {
			groups := grow(t, 4, test.config)
			view := groups[0].View().Number
			accepted := 0
			for _, g := range groups {
				for rank := range protocol.Rank(len(groups)) {
					if int(rank) == g.Rank() {
						continue
					}
					h := wire.Hello{
						Group: "faults", From: rank, To: protocol.Rank(g.Rank()), Incarnation: math.MaxUint64,
						Attempt: math.MaxUint64,
					}
					c, ok := attacker(t, g.Self().Address, h, test.insider)
					defer c.Close()
					if ok {
						accepted++
					}
				}
			}
			expectNoChange(t, groups, view)
			figures(t, map[string]any{"case": 27, "claim": name, "accepted": accepted, "views": groups[0].View().Number - view})
			if accepted > 0 {
				t.Errorf("%d claims were accepted", accepted)
			}
		})
	}
}

// Case 27: a member with a certificate of its own asks to join as another one, at once
// and after that one has left.
func TestCase27InsiderCannotTakeAnotherID(t *testing.T) {
	ca := testutil.NewCA(t)
	loopback := net.IPv4(127, 0, 0, 1)
	groups := grow(t, 3, func(id string) pleach.Config {
		return pleach.Config{Security: pleach.Security{TLS: certificateFor(t, ca, id, loopback)}}
	})
	view, seed := groups[0].View().Number, groups[0].Self().Address
	join := func() []byte {
		// Join itself would refuse: the attacker listens as member-9, and asks as member-1.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		config := certificateFor(t, ca, "member-9", loopback)
		c, err := tcp.NewCandidate(tcp.Config{Group: "faults", Listener: l, TLS: config},
			func(transport.Client, []byte) []byte { return []byte{1} })
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		reply, err := tcp.Request(t.Context(), tcp.Config{Group: "faults", TLS: config}, seed,
			joinRequest("member-1", l.Addr().String()))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	reply := join()
	if len(reply) == 0 || reply[0] != 0 || !strings.Contains(string(reply), `not for "member-1"`) ||
		!strings.Contains(string(reply), "member-9") {
		t.Errorf("while it is a member: %q", reply)
	}
	expectNoChange(t, groups, view)
	if err := groups[1].Close(); err != nil {
		t.Fatal(err)
	}
	if reply := join(); len(reply) == 0 || reply[0] != 0 {
		t.Errorf("after it has left: %q", reply)
	}
	expectNoChange(t, []*pleach.Group{groups[0], groups[2]}, view+1)
	figures(t, map[string]any{"case": 27, "insider": string(reply[1:])})
}

// joinRequest is a request to join, from a process that makes up everything in it.
func joinRequest(id, address string) []byte {
	b := []byte{2}
	for _, text := range []string{id, address, "", ""} {
		b = wire.AppendBytes(b, []byte(text))
	}
	return wire.AppendUint8(wire.AppendUint16(wire.AppendUint64(b, uint64(time.Now().UnixNano())), wire.Newest()), 0)
}

// Case 27: requests to join from processes that cannot be reached change no view.
func TestCase27CandidatesMustBeReached(t *testing.T) {
	groups := grow(t, 4, func(string) pleach.Config { return pleach.Config{} })
	view, seed := groups[0].View().Number, groups[0].Self().Address
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, test := range map[string]struct {
		address string
		kind    byte
	}{
		"no process":       {closed.Addr().String(), 3},
		"a silent process": {silent.Addr().String(), 3},
		"a member":         {groups[2].Self().Address, 0},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					reply, err := tcp.Request(t.Context(), tcp.Config{Group: "faults"}, seed,
						joinRequest(fmt.Sprint("nobody-", i), test.address))
					if err != nil || len(reply) == 0 || reply[0] != test.kind || !strings.Contains(string(reply), test.address) {
						t.Errorf("%q, %v", reply, err)
					}
				})
			}
			wg.Wait()
			figures(t, map[string]any{
				"case": 27, "address_of": name, "requests": 20,
				"took_ms": time.Since(began).Milliseconds(), "views": groups[0].View().Number - view,
			})
		})
	}
	expectNoChange(t, groups, view)
}

// Case 27: processes connect as ranks that no member has. A member keeps few of them.
func TestCase27ConnectionsAsUnknownRanks(t *testing.T) {
	const connections, bound = 1500, 128
	groups := grow(t, 3, func(string) pleach.Config { return pleach.Config{} })
	view, address := groups[0].View().Number, groups[0].Self().Address
	var open atomic.Int64
	var wg sync.WaitGroup
	conns := make([]net.Conn, connections)
	for i := range conns {
		h := wire.Hello{Group: "faults", From: protocol.Rank(100 + i), To: 0, Incarnation: 1, Attempt: 1}
		conns[i], _ = attacker(t, address, h, nil)
		_ = conns[i].SetDeadline(time.Time{})
		open.Add(1)
		wg.Go(func() {
			defer open.Add(-1)
			_, _ = io.Copy(io.Discard, conns[i])
		})
	}
	defer wg.Wait()
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for deadline := time.Now().Add(20 * time.Second); open.Load() > bound && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	kept := open.Load()
	h := wire.Hello{Group: "faults", From: 1 << 19, To: 0, Incarnation: 1, Attempt: 1}
	c, far := attacker(t, address, h, nil)
	_ = c.Close()
	expectNoChange(t, groups, view)
	figures(t, map[string]any{"case": 27, "connections": connections, "kept": kept})
	if kept > bound || far {
		t.Errorf("%d of %d connections are kept; a rank far beyond the view is accepted: %v", kept, connections, far)
	}
}
