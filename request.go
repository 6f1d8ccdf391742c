package pleach

// Processes that are no members ask members for something: see package control. This file
// answers the requests to a member.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// handleRequest answers a request.
func (g *session) handleRequest(ctx context.Context, from transport.Client, b []byte, answer func([]byte)) {
	v := g.view.Load()
	request, err := g.client.OpenRequest(v, from, b)
	if err != nil {
		answer(client.Refuse(err))
		return
	}
	switch r := request.(type) {
	case control.Force:
		answer(g.client.Answer(v, from, r, g.force(r.View, r.Ranks)))
	case control.Raise:
		answer(g.client.Answer(v, from, r, g.raise(r.Version)))
	case control.Evict:
		answer(g.client.Answer(v, from, r, g.evict(r)))
	case control.Compare:
		answer(g.answerSettings(&r))
	case control.Progress:
		answer(g.encodeProgress())
	case control.Join:
		if !client.Dialable(r.Candidate.Address) {
			answer(client.Refuse(fmt.Errorf("members cannot dial a candidate at %q: it has to advertise host:port", r.Candidate.Address)))
			return
		}
		g.admit(ctx, from, r.Candidate, r.Replace, answer)
	default:
		answer(g.catchUp.Requested(r))
	}
}

// answerJoin answers a candidate, within node.Do.
func (g *session) answerJoin(a *member.JoinAnswer, answer func([]byte)) {
	var inUse *membership.InUseError
	switch {
	case errors.As(a.Err, &inUse):
		g.log.Info("candidate refused", "cause", a.Err)
		answer(client.Refuse(g.inUse(inUse)))
	case a.Err != nil:
		if errors.As(a.Err, new(*membership.VersionError)) {
			g.log.Info("candidate refused", "cause", a.Err)
		}
		answer(client.Refuse(a.Err))
	default:
		admission := control.Admission{View: a.View, Rank: a.Rank, Decisions: a.Decisions, Start: a.Start}
		answer(admission.Encode())
	}
}

// inUse translates the refusal of a candidate whose ID a member has.
func (g *session) inUse(e *membership.InUseError) *control.InUse {
	h := &e.Holder
	return &control.InUse{
		ID: h.Identity, Rank: h.Rank, Address: h.Address, Incarnation: h.Incarnation, View: e.View,
		Since: g.admittedAt(h),
	}
}

// moved takes that a member is not where the view has it, within node.Do.
func (g *session) moved(to *lifecycle.Move) {
	g.elsewhere = to.Elsewhere
	if g.detection == nil {
		return
	}
	v := g.machine.View()
	g.log.Info("member is elsewhere", "member", to.ID, "address", to.Address, "view", v.Number)
	g.setPeers(&v, membership.Members{})
	g.detection.Watch(&v, g.elsewhere.Address)
}

const (
	// maxReach bounds the candidates that a member dials at a time, half of them for one
	// host; others wait.
	maxReach = 64
	// reachTimeout bounds the time in which a candidate has to confirm.
	reachTimeout = time.Duration(lifecycle.ConfirmTimeout)
)

// admit passes a candidate on to the coordinator, once it has been reached: this member
// dials the candidate's address and sends the nonce of the request back. Only the process
// that has made the request knows it, and confirms. So requests with addresses where no
// process listens, or another one, change no view. With TLS, the candidate's certificate
// must be for the ID that it asks for.
func (g *session) admit(ctx context.Context, from transport.Client, m membership.Member, replace bool, answer func([]byte)) {
	g.reaching.Go(func() {
		leave, err := g.reachSlots.Enter(ctx, from.Address)
		if err != nil {
			return // the client has gone
		}
		defer leave()
		if err := g.reach(ctx, m); err != nil {
			g.logRefused(m, err)
			answer(client.Refuse(err))
			return
		}
		_ = g.node.Do(func(now protocol.Time) {
			g.machine.Join(now, m, replace, func(a member.JoinAnswer) { g.answerJoin(&a, answer) })
		})
	})
}

// logRefused logs that a candidate is refused, once for each host and kind of cause.
func (g *session) logRefused(m membership.Member, err error) {
	kind := ErrRefused
	if errors.Is(err, ErrUnreachable) {
		kind = ErrUnreachable
	}
	if repeated, changed := g.refusals.Changed(admission.HostOf(m.Address), kind); changed {
		g.log.Info("candidate refused", "id", m.Identity, "address", m.Address, "cause", err, "repeated", repeated)
	}
}

// reach dials a candidate and asks it to confirm its request.
func (g *session) reach(ctx context.Context, m membership.Member) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	t := g.client.Config(nil)
	if g.config.Security.TLS != nil {
		former := g.formerHost(m.Identity)
		t.Verify = func(claim tcp.Claim) error { return verifyCandidate(&g.config, m, former, claim) }
	}
	reply, err := tcp.Request(ctx, t, m.Address, control.Encode(control.Confirm{Candidate: m}))
	switch {
	case err != nil && (ctx.Err() != nil || !client.Permanent(err)):
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
					host = admission.HostOf(m.Address)
				}
			}
		}
	})
	return host
}
