package pleach

// A candidate becomes a member only after a member has reached it. The member that gets
// the join request dials the candidate's address and sends the nonce of the request
// back. Only the process that has made the request knows it, and confirms. So requests
// with addresses where no process listens, or another one, change no view. With TLS,
// the candidate's certificate must be for the ID that it asks for.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/door"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

const (
	// maxReach bounds the candidates that a member dials at a time, half of them for one
	// host; others wait.
	maxReach = 64
	// reachTimeout bounds the time in which a candidate has to confirm.
	reachTimeout = 2 * time.Second
)

// client is the config of a process that has no rank.
func clientOf(c *Config, listener net.Listener) tcp.Config {
	t := tcp.Config{Group: c.Group, TLS: c.TLS, Secret: c.Secret, Dial: c.Dial, Logger: c.Logger, Listener: listener}
	if c.TLS != nil {
		t.Verify = func(claim tcp.Claim) error { return verifyUnknown(c, claim) }
	}
	return t
}

// admit passes a candidate on to the coordinator, once it has been reached.
func (g *session) admit(ctx context.Context, from transport.Client, m membership.Member, replace bool, answer func([]byte)) {
	g.reaching.Go(func() {
		leave, err := g.reachSlots.Enter(ctx, from.Address)
		if err != nil {
			return // the client has gone
		}
		defer leave()
		if err := g.reach(ctx, m); err != nil {
			g.logRefused(m, err)
			answer(refuse(err))
			return
		}
		_ = g.node.Do(func(now protocol.Time) {
			g.inputs.Join(now, m, replace, func(a member.JoinAnswer) { g.answerJoin(&a, answer) })
		})
	})
}

// logRefused logs that a candidate is refused, once for each host and kind of cause.
func (g *session) logRefused(m membership.Member, err error) {
	kind := ErrRefused
	if errors.Is(err, ErrUnreachable) {
		kind = ErrUnreachable
	}
	if repeated, changed := g.refusals.Changed(door.HostOf(m.Address), kind); changed {
		g.log.Info("candidate refused", "id", m.Identity, "address", m.Address, "cause", err, "repeated", repeated)
	}
}

// reach dials a candidate and asks it to confirm its request.
func (g *session) reach(ctx context.Context, m membership.Member) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	t := clientOf(&g.config, nil)
	if g.config.TLS != nil {
		former := g.formerHost(m.Identity)
		t.Verify = func(claim tcp.Claim) error { return verifyCandidate(&g.config, m, former, claim) }
	}
	reply, err := tcp.Request(ctx, t, m.Address, control.Encode(control.Confirm{Candidate: m}))
	switch {
	case err != nil && (ctx.Err() != nil || !permanent(err)):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case err != nil:
		return err
	}
	if _, err := control.Open(reply); err != nil {
		return fmt.Errorf("another process answers at %s: %w", m.Address, err)
	}
	return nil
}

// formerHost is the host of the last process with an ID, or empty.
func (g *session) formerHost(id string) (host string) {
	_ = g.node.Do(func(protocol.Time) {
		v := g.machine.View()
		for _, list := range []membership.Members{v.Former, v.Members} {
			for _, m := range list.All() {
				if m.Identity == id {
					host = door.HostOf(m.Address)
				}
			}
		}
	})
	return host
}

// verifyCandidate returns an error if a candidate's certificate is not for its ID. A
// certificate of a host is enough for the IDs that are new or were on that host: only
// one that names an ID may take it to another host.
func verifyCandidate(c *Config, m membership.Member, former string, claim tcp.Claim) error {
	leaf := claim.Certificates[0]
	if err := covers(c, leaf, m.Identity, m.Address); err != nil {
		return err
	}
	if former != "" && former != door.HostOf(m.Address) && c.TLS.ServerName == "" && !doorOf(c, nil).NamesID(leaf, m.Identity) {
		return fmt.Errorf("%q was on host %s: %w", m.Identity, former, &IdentityError{ID: m.Identity, Address: m.Address, ValidFor: door.NamesOf(leaf)})
	}
	return nil
}
