package pleach

// This file answers requests of processes that are not members: see package control.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/catchup"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// requests answers processes that are not members.
type requests struct {
	*core
	client     *client.Client
	candidates *candidates
	agreed     *agreed
	catchUp    *catchup.Driver
}

// handleRequest answers a request.
func (a *requests) handleRequest(ctx context.Context, from transport.Client, b []byte, answer func([]byte)) {
	v := a.view.Load()
	request, err := a.client.OpenRequest(v, from, b)
	if err != nil {
		answer(client.Refuse(err))
		return
	}
	switch r := request.(type) {
	case control.Force:
		answer(a.client.Answer(v, from, r, a.force(r.View, r.Ranks)))
	case control.Raise:
		answer(a.client.Answer(v, from, r, a.raise(r.Version)))
	case control.Evict:
		answer(a.client.Answer(v, from, r, a.evict(r)))
	case control.Compare:
		answer(a.agreed.answerSettings(&r))
	case control.Progress:
		answer(a.encodeProgress())
	case control.Join:
		if !client.Dialable(r.Candidate.Address) {
			answer(client.Refuse(fmt.Errorf("members cannot dial a candidate at %q: it has to advertise host:port",
				r.Candidate.Address)))
			return
		}
		a.candidates.admit(ctx, from, r.Candidate, r.Replace, answer)
	default:
		answer(a.catchUp.Requested(r))
	}
}

// candidates is how processes that ask to join become members.
type candidates struct {
	*core
	client     *client.Client
	reachSlots *admission.Slots    // one for each candidate that is dialed
	reaching   sync.WaitGroup      // dials candidates; see admit
	refusals   logsuppress.Foreign // of candidates
	// When this member has seen others join, and has entered the first view, if it has; used within
	// node.Do.
	admissions  map[protocol.Rank]joinTime
	firstViewAt time.Time
}

// answerJoin answers a candidate, within node.Do.
func (c *candidates) answerJoin(a *member.JoinAnswer, answer func([]byte)) {
	var inUse *membership.InUseError
	switch {
	case errors.As(a.Err, &inUse):
		c.log.Info("candidate refused", "cause", a.Err)
		answer(client.Refuse(c.inUse(inUse)))
	case a.Err != nil:
		if errors.As(a.Err, new(*membership.VersionError)) {
			c.log.Info("candidate refused", "cause", a.Err)
		}
		answer(client.Refuse(a.Err))
	default:
		admission := control.Admission{View: a.View, Rank: a.Rank, Decisions: a.Decisions, Start: a.Start}
		answer(admission.Encode())
	}
}

// inUse translates the refusal of a candidate whose ID a member has.
func (c *candidates) inUse(e *membership.InUseError) *control.InUse {
	h := &e.Holder
	return &control.InUse{
		ID: h.Identity, Rank: h.Rank, Address: h.Address, Incarnation: h.Incarnation, View: e.View,
		Since: c.admittedAt(h),
	}
}

// moved takes that a member is not where the view has it, within node.Do.
func (g *session) moved(to *lifecycle.Move) {
	g.network.elsewhere = to.Elsewhere
	if g.detection == nil {
		return
	}
	v := g.machine.View()
	g.log.Info("member is elsewhere", "member", to.ID, "address", to.Address, "view", v.Number)
	g.setPeers(&v, membership.Members{})
	g.detection.Watch(&v, g.network.elsewhere.Address)
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
func (c *candidates) admit(ctx context.Context, from transport.Client, m membership.Member, replace bool,
	answer func([]byte),
) {
	c.reaching.Go(func() {
		leave, err := c.reachSlots.Enter(ctx, from.Address)
		if err != nil {
			return // the client has gone
		}
		defer leave()
		if err := c.reach(ctx, m); err != nil {
			c.logRefused(m, err)
			answer(client.Refuse(err))
			return
		}
		_ = c.node.Do(func(now protocol.Time) {
			c.machine.Join(now, m, replace, func(a member.JoinAnswer) { c.answerJoin(&a, answer) })
		})
	})
}

// logRefused logs that a candidate is refused, once for each host and kind of cause.
func (c *candidates) logRefused(m membership.Member, err error) {
	kind := ErrRefused
	if errors.Is(err, ErrUnreachable) {
		kind = ErrUnreachable
	}
	if repeated, changed := c.refusals.Changed(admission.HostOf(m.Address), kind); changed {
		c.log.Info("candidate refused", "id", m.Identity, "address", m.Address, "cause", err, "repeated", repeated)
	}
}

// reach dials a candidate and asks it to confirm its request.
func (c *candidates) reach(ctx context.Context, m membership.Member) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	t := c.client.Config(nil)
	if c.config.Security.TLS != nil {
		former := c.formerHost(m.Identity)
		t.Verify = func(claim tcp.Claim) error { return verifyCandidate(&c.config, m, former, claim) }
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
func (c *candidates) formerHost(id string) (host string) {
	_ = c.node.Do(func(protocol.Time) {
		v := c.machine.View()
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
