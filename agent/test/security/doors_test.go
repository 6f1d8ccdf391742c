package security

// The ways around the doors that a review has found. Each was seen open.

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// requestFounding is the kind of a founding request.
const requestFounding = 5

// A process promises itself to a founder under the names of others, which are not there.
// Neither a certificate for another group nor one for another ID lets it.
func TestSecurityPhantomsDoNotFound(t *testing.T) {
	ca := testutil.NewCA(t)
	for name, path := range map[string]string{"another group": "pleach/other/evil", "another ID": "pleach/web/evil"} {
		t.Run(name, func(t *testing.T) {
			addresses := testutil.FreeAddresses(t, 3)
			ids := []string{"a", "b", "c"}
			began := make(chan []pleach.Member, 1)
			ctx := timed(t, 3*time.Second)
			go func() {
				g, err := pleach.Join(ctx, pleach.Config{
					Group: group, ID: "a", Expect: 3, Listen: addresses[0],
					Security: pleach.Security{TLS: uriTLS(t, ca, "pleach/web/a")},
				}, addresses...)
				var members []pleach.Member
				if err == nil {
					members = g.View().Members()
					_ = g.Abort()
				}
				began <- members
			}()
			evil := tcp.Config{Group: group, TLS: uriTLS(t, ca, path), Verify: func(tcp.Claim) error { return nil }}
			promise := founding.Request{Expect: 3}
			for pace := time.Tick(20 * time.Millisecond); ctx.Err() == nil; <-pace {
				for i := 1; i < 3; i++ {
					promise.From = founding.Candidate{ID: ids[i], Address: addresses[i], Nonce: uint64(40 + i), Version: wire.Newest()}
					b, err := tcp.Request(ctx, evil, addresses[0], promise.Encode([]byte{requestFounding}))
					if err != nil {
						continue
					}
					if reply, err := founding.DecodeReply(b); err == nil {
						promise.Promise, promise.Term = reply.From.Nonce, reply.Term
					}
				}
			}
			if members := <-began; members != nil {
				t.Errorf("a group began with phantoms: %+v", members)
			}
		})
	}
}

// A certificate for another group neither inspects, nor raises the version, nor forces a view.
func TestSecurityOtherGroupsCertificate(t *testing.T) {
	ca := testutil.NewCA(t)
	first := create(t, pleach.Config{ID: "a", Security: pleach.Security{TLS: uriTLS(t, ca, "pleach/web/a")}})
	address := first.Self().Address
	evil := pleach.Config{Group: group, Security: pleach.Security{TLS: uriTLS(t, ca, "pleach/other/evil")}}
	ctx := timed(t, 10*time.Second)
	_, err := pleach.Inspect(ctx, evil, address)
	refused(t, "inspect", err)
	_, err = pleach.RaiseVersion(ctx, evil, address)
	refused(t, "raise the version", err)
	evil.ID = "evil"
	_, err = pleach.Join(ctx, evil, address)
	refused(t, "join", err)

	others := make([]*pleach.Group, 0, 3)
	for _, id := range []string{"b", "c", "d"} {
		others = append(others,
			join(t, pleach.Config{ID: id, Security: pleach.Security{TLS: uriTLS(t, ca, "pleach/web/"+id)}}, address))
	}
	loseQuorum(t, first, others)
	evil.ID = ""
	_, err = pleach.ForceView(ctx, evil, address)
	refused(t, "force a view", err)
	if v, err := pleach.ForceView(ctx, pleach.Config{
		Group:    group,
		Security: pleach.Security{TLS: uriTLS(t, ca, "pleach-operator/web")},
	}, address); err != nil || v.Size() != 1 {
		t.Errorf("an operator cannot force a view: %v", err)
	}
}

// loseQuorum kills the other members at once, and waits until one reports that its quorum
// is lost.
func loseQuorum(t testing.TB, g *pleach.Group, others []*pleach.Group) {
	t.Helper()
	var killing sync.WaitGroup
	for _, o := range others {
		killing.Go(func() { _ = o.Abort() })
	}
	killing.Wait()
	for ctx := timed(t, 10*time.Second); ; {
		if v := g.View(); errors.As(v.Err, new(*pleach.QuorumError)) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("the quorum is not lost")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A refusal says why, and nothing that helps to be let in.
func TestSecurityRefusalsTellNothing(t *testing.T) {
	first := create(t, pleach.Config{ID: "a"})
	second := join(t, pleach.Config{ID: "b"}, first.Self().Address)
	address := first.Self().Address
	for name, h := range map[string]wire.Hello{
		"another group": {Group: "x", From: protocol.NoRank, To: protocol.NoRank},
		"another size":  {Group: group, Size: 7, From: 1, To: 0},
		"another rank":  {Group: group, From: 1, To: 5},
		"another process": {
			Group: group, From: 1, To: 0, Incarnation: second.Self().Incarnation, Attempt: math.MaxUint64,
			Process: 99,
		},
		"a former process": {Group: group, From: 1, To: 0, Incarnation: 0, Attempt: math.MaxUint64},
		"a client":         {Group: group, From: protocol.NoRank, To: protocol.NoRank},
	} {
		answer, err := sayHello(dial(t, address, nil), &h)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if answer.Process != 0 || answer.Incarnation != 0 || answer.Attempt != 0 || h.Group != group &&
			answer.Group == group {
			t.Errorf("%s: %v, and tells group %q, rank %d, incarnation %d, nonce %x, attempt %d", name, answer.Status,
				answer.Group, answer.From, answer.Incarnation, answer.Process, answer.Attempt)
		}
		if name != "a client" && answer.Status == wire.Accepted {
			t.Errorf("%s: let in", name)
		}
	}
}

// What a stranger learns by asking lets it neither speak as a member nor cut it off.
func TestSecurityClaimsNeedProof(t *testing.T) {
	first := create(t, pleach.Config{ID: "a"})
	second := join(t, pleach.Config{ID: "b"}, first.Self().Address)
	learned, err := sayHello(dial(t, second.Self().Address, nil), &wire.Hello{
		Group: group, From: protocol.NoRank,
		To: protocol.NoRank,
	})
	if err != nil {
		t.Fatal(err)
	}
	claim := wire.Hello{
		Group: group, From: 1, To: 0, Incarnation: second.Self().Incarnation, Process: learned.Process,
		Attempt: math.MaxUint64,
	}
	answer, err := sayHello(dial(t, first.Self().Address, nil), &claim)
	if err == nil && answer.Status == wire.Accepted {
		t.Error("a stranger is let in as the member whose door it has knocked at")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := first.Broadcast(ctx, []byte("still there")); err != nil {
		t.Fatal(err)
	}
	for m := range second.Messages(ctx) {
		if string(m.Data) != "still there" {
			t.Errorf("got %q", m.Data)
		}
		return
	}
	t.Error("the member does not hear the other one any more")
}
