package security

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// write replaces a file as a whole, as an operator does.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// serialTLS returns the config of a member with a certificate of a serial number.
func serialTLS(t testing.TB, ca *testutil.CA, id string, serial int64) *tls.Config {
	t.Helper()
	return config(t, ca.IssueNames(t, serialTemplate(t, id, serial)))
}

// serialTemplate is a certificate of a member with a serial number.
func serialTemplate(t testing.TB, id string, serial int64) *x509.Certificate {
	t.Helper()
	u, err := url.Parse("spiffe://example.org/pleach/web/" + id)
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{SerialNumber: big.NewInt(serial), URIs: []*url.URL{u}}
}

// load has members broadcast and receive until the test ends.
type load struct {
	wg       sync.WaitGroup
	sent     atomic.Int64
	received atomic.Int64
}

// add begins the load of a member, which ends with it.
func (l *load) add(ctx context.Context, g *pleach.Group) {
	l.wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := g.Broadcast(ctx, fmt.Appendf(nil, "%d", n)); err != nil {
				return
			}
			l.sent.Add(1)
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	l.wg.Go(func() {
		for range g.Messages(ctx) {
			l.received.Add(1)
		}
	})
}

// gone returns how long it takes until the members have a view without an ID, and why it left.
func gone(t testing.TB, from time.Time, groups []*pleach.Group, id string) (time.Duration, pleach.Cause) {
	t.Helper()
	ctx := timed(t, 30*time.Second)
	cause := pleach.Cause("")
	for _, g := range groups {
		for v := range g.Views(ctx) {
			if !slices.ContainsFunc(v.Members(), func(m pleach.Member) bool { return m.ID == id }) {
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%s is still in view %d of %s: %v", id, g.View().Number, g.Self().ID, g.Err())
		}
		for _, v := range g.Status().History {
			for _, c := range v.Changes {
				if c.ID == id && c.Gone() {
					cause = c.Cause
				}
			}
		}
	}
	return time.Since(from), cause
}

// awaitRefusal waits until a member has read its deny list, and refuses a process with a
// certificate for good.
func awaitRefusal(t testing.TB, c *tls.Config, address string) {
	t.Helper()
	ctx := timed(t, 20*time.Second)
	for {
		_, err := pleach.Inspect(ctx, pleach.Config{Group: group, Security: pleach.Security{TLS: c}}, address)
		switch {
		case errors.Is(err, tcp.ErrCertificate), errors.Is(err, pleach.ErrRefused): // by the handshake, or right after it
			return
		case err != nil:
			t.Fatalf("a denied process looks: %v", err)
		}
	}
}

// A member whose certificate or ID is denied, or that an operator evicts, is out of all views,
// under load, and no other member is touched. A denied process cannot join or look; an evicted
// one joins again.
func TestSecurityRevokedAndEvicted(t *testing.T) {
	ca, deny := testutil.NewCA(t), filepath.Join(t.TempDir(), "deny")
	write(t, deny, "# nothing is denied\n")
	ctx, stop := context.WithCancel(t.Context())
	var l load
	defer l.wg.Wait()
	defer stop()
	member := func(id string, serial int64) pleach.Config {
		return pleach.Config{ID: id, Security: pleach.Security{TLS: serialTLS(t, ca, id, serial), DenyFile: deny}}
	}
	honest := []*pleach.Group{create(t, member("a", 1))}
	seed := honest[0].Self().Address
	for i, id := range []string{"b", "c", "d"} {
		honest = append(honest, join(t, member(id, int64(2+i)), seed))
	}
	for _, g := range honest {
		l.add(ctx, g)
	}
	operator := pleach.Config{Group: group, Security: pleach.Security{TLS: uriTLS(t, ca, "pleach-operator/web")}}
	list, slowest := "", make(map[string]time.Duration)
	for round := range testutil.Rounds.Or(1) {
		id, serial := fmt.Sprintf("evil-%d", round), int64(0x1000+round)
		c := member(id, serial)
		c.Security.DenyFile = "" // it does not deny itself
		for _, way := range []string{"evict", "serial", "id"} {
			if way == "id" { // the serial number of its next certificate is not denied
				serial += 0x1000
				c.Security.TLS = serialTLS(t, ca, id, serial)
			}
			evil := join(t, c, seed)
			l.add(ctx, evil)
			for _, g := range append(honest, evil) {
				for v := range g.Views(timed(t, 20*time.Second)) {
					if v.Size() == 5 {
						break
					}
				}
			}
			from, want := time.Now(), pleach.CauseRevoked
			switch way {
			case "evict":
				want = pleach.CauseEvicted
				if _, err := pleach.Evict(timed(t, 20*time.Second), operator, seed, id); err != nil {
					t.Fatal(err)
				}
			case "serial":
				list += fmt.Sprintf("serial %x\n", serial)
				write(t, deny, list)
			case "id":
				list += "id " + id + "\n"
				write(t, deny, list)
			}
			took, cause := gone(t, from, honest, id)
			slowest[way] = max(slowest[way], took)
			if cause != want {
				t.Errorf("%s: %s is gone because %q", way, id, cause)
			}
			if way == "evict" {
				var evicted *pleach.EvictedError
				testutil.Eventually(t, "its end", func() bool { return evil.Err() != nil })
				if !errors.As(evil.Err(), &evicted) || evicted.Cause != pleach.CauseEvicted {
					t.Errorf("it ends with %v", evil.Err())
				}
			} else {
				c := c
				c.Group = group
				awaitRefusal(t, c.Security.TLS, seed)
				_, err := pleach.Join(timed(t, 10*time.Second), c, seed)
				refused(t, way+": it joins", err)
			}
			_ = evil.Abort()
			for _, g := range honest {
				if g.Err() != nil || g.View().Size() != 4 || g.View().Err != nil {
					t.Fatalf("%s: %s has %v, %v", way, g.Self().ID, g.View().Err, g.Err())
				}
			}
		}
	}
	t.Logf("slowest: %v; %d messages sent, %d received", slowest, l.sent.Load(), l.received.Load())
}

// A certificate that was stolen is denied by its serial number. Its owner has another one by then,
// and stays a member although a process with the stolen one claims its place.
func TestSecurityOwnerOfDeniedCertificateStays(t *testing.T) {
	ca, dir := testutil.NewCA(t), t.TempDir()
	deny := filepath.Join(dir, "deny")
	write(t, deny, "")
	member := func(id string, serial int64) pleach.Config {
		return pleach.Config{ID: id, Security: pleach.Security{TLS: serialTLS(t, ca, id, serial), DenyFile: deny}}
	}
	a := create(t, member("a", 1))
	b := member("b", 2)
	next := serialTLS(t, ca, "b", 3)
	var current atomic.Pointer[tls.Config]
	current.Store(b.Security.TLS)
	stolen := b.Security.TLS
	b.Security.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return current.Load(), nil
	}}
	owner := join(t, b, a.Self().Address)
	c := join(t, member("c", 4), a.Self().Address)
	current.Store(next)

	write(t, deny, "serial 02\n")
	thief := pleach.Config{
		Group: group, ID: "b", Security: pleach.Security{TLS: stolen},
		Recovery: pleach.Recovery{Replace: true},
	}
	awaitRefusal(t, stolen, a.Self().Address)
	for range 5 {
		_, err := pleach.Join(timed(t, 5*time.Second), thief, a.Self().Address)
		refused(t, "a stolen certificate", err)
		again := timed(t, 20*time.Second)
		if err := owner.Broadcast(again, []byte("here")); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.WaitStable(again); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range []*pleach.Group{a, owner, c} {
		if g.Err() != nil || g.View().Size() != 3 {
			t.Errorf("%v, %v", g.View(), g.Err())
		}
	}
}

// rotating is a member whose secret file is its own, as on a host of its own.
type rotating struct {
	id, file string
	group    *pleach.Group
}

// start makes it a member, again if it was one.
func (m *rotating) start(t testing.TB, seeds ...string) {
	t.Helper()
	c := pleach.Config{Group: group, ID: m.id, Security: pleach.Security{SecretFile: m.file}, Listen: "127.0.0.1:0"}
	ctx := timed(t, 60*time.Second)
	var err error
	if len(seeds) == 0 {
		m.group, err = pleach.Create(ctx, c)
	} else {
		m.group, err = pleach.Join(ctx, c, seeds...)
	}
	if err != nil {
		t.Fatalf("%s is locked out: %v", m.id, err)
	}
}

// The secret is replaced under load, host by host, while members are killed and started again in
// the middle: no message is lost between those that live, and nobody is locked out.
func TestSecuritySecretRotates(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	secret := func(n int) string { return fmt.Sprintf("the secret number %4d", n) }
	var members []*rotating
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		m := &rotating{id: id, file: filepath.Join(t.TempDir(), "secret")}
		write(t, m.file, secret(0)+"\n")
		if len(members) == 0 {
			m.start(t)
		} else {
			m.start(t, members[0].group.Self().Address)
		}
		members = append(members, m)
	}
	defer func() {
		for _, m := range members {
			_ = m.group.Abort()
		}
	}()
	stay, killed := members[:3], members[3:]
	sent, got := make([]atomic.Int64, len(stay)), make([][3]atomic.Int64, len(stay))
	ending := make(chan struct{})
	for i, m := range stay {
		wg.Go(func() {
			for n := int64(0); ; n++ {
				select {
				case <-ending:
					return
				case <-time.After(2 * time.Millisecond):
				}
				if err := m.group.Broadcast(ctx, fmt.Appendf(nil, "%s %d", m.id, n)); err != nil {
					t.Errorf("%s broadcasts: %v", m.id, err)
					return
				}
				sent[i].Store(n + 1)
			}
		})
		wg.Go(func() {
			for message, err := range m.group.Messages(ctx) {
				var id string
				var n int64
				if _, scanErr := fmt.Sscanf(string(message.Data), "%1s %d", &id, &n); scanErr != nil {
					t.Errorf("%s has got %q, %v", m.id, message.Data, err)
					continue
				}
				if from := int(id[0] - 'a'); !got[i][from].CompareAndSwap(n, n+1) {
					t.Errorf("%s has got message %d of %s after %d", m.id, n, id, got[i][from].Load())
				}
			}
		})
	}
	const kills = 2 // in each rotation
	rounds := testutil.Rounds.Or(1)
	for round := range rounds {
		old, next := secret(round), secret(round+1)
		for step, text := range []string{old + "\n" + next + "\n", next + "\n" + old + "\n", next + "\n"} {
			for k, m := range members { // one host after the other
				write(t, m.file, text)
				if v := killed[(round+step)%2]; step < kills && k == 2 {
					_ = v.group.Abort()
					v.start(t, stay[step].group.Self().Address)
				}
			}
			for _, m := range members { // as pleach secret check does
				awaitSecret(t, m, map[bool]string{true: next, false: old}[step < 2], step == 2)
				awaitSecret(t, m, next, false)
			}
		}
	}
	close(ending)
	for i, m := range stay {
		for from := range stay {
			if from == i {
				continue
			}
			testutil.Eventually(t, fmt.Sprintf("%s has all messages of %s", m.id, stay[from].id), func() bool {
				if t.Failed() || m.group.Err() != nil {
					t.Fatalf("%s: %v", m.id, m.group.Err())
				}
				return got[i][from].Load() >= sent[from].Load()
			})
		}
	}
	v := stay[0].group.View()
	if v.Size() != len(members) {
		t.Errorf("view %d has %d members", v.Number, v.Size())
	}
	t.Logf("%d rotations, %d kills: %d, %d and %d messages sent, lost 0, view %d", rounds, rounds*kills, sent[0].Load(),
		sent[1].Load(), sent[2].Load(), v.Number)
}

// awaitSecret waits until a member accepts a secret, or refuses it.
func awaitSecret(t testing.TB, m *rotating, secret string, refuses bool) {
	t.Helper()
	awaitSecretAt(t, m.id, m.group.Self().Address, secret, refuses)
}

func awaitSecretAt(t testing.TB, id, address, secret string, refuses bool) {
	t.Helper()
	var err error
	testutil.Eventually(t, fmt.Sprintf("%s refuses %q: %v", id, secret, refuses), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = pleach.Inspect(ctx, pleach.Config{Group: group, Security: pleach.Security{Secret: []byte(secret)}}, address)
		return refuses == errors.Is(err, tcp.ErrSecret) && (refuses || err == nil)
	}, func() any { return err })
}
