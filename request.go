package pleach

// Processes that are no members ask members for something, and members ask candidates: see
// package control. This file answers the requests to a member, and sends requests.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/dedup"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// handleRequest answers a request.
func (g *session) handleRequest(ctx context.Context, from transport.Client, b []byte, answer func([]byte)) {
	request, err := openRequest(&g.config, g.view.Load(), from, b)
	if err != nil {
		answer(refuse(err))
		return
	}
	switch r := request.(type) {
	case control.Founding:
		answer(g.answerFounding(&r.Request))
	case control.Force:
		answer(accepted(g.force(r.View, r.Ranks)))
	case control.Raise:
		answer(accepted(g.raise(r.Version)))
	case control.CatchUp:
		answer(accepted(g.catchUpWith(r.View, r.Address)))
	case control.Decisions:
		_ = g.node.Do(func(protocol.Time) { answer(control.Accept(g.machine.Decisions().Encode(nil))) })
	case control.Introduce:
		g.answerIntroduction(&r.Question, answer)
	case control.Progress:
		answer(g.encodeProgress())
	case control.View:
		_ = g.node.Do(func(protocol.Time) { answer(encodeView(g.machine.View(), g.lostQuorum())) })
	case control.Confirm:
		answer(refuse(fmt.Errorf("it is member %q of this group", g.self.Identity)))
	case control.Join:
		if !dialable(r.Candidate.Address) {
			answer(refuse(fmt.Errorf("members cannot dial a candidate at %q: it has to advertise host:port", r.Candidate.Address)))
			return
		}
		g.admit(ctx, from, r.Candidate, r.Replace, answer)
	}
}

// accepted is the reply to a request that is done, or was refused.
func accepted(err error) []byte {
	if err != nil {
		return refuse(err)
	}
	return control.Accept(nil)
}

// answerJoin answers a candidate, within node.Do.
func (g *session) answerJoin(a *member.JoinAnswer, answer func([]byte)) {
	var inUse *membership.InUseError
	switch {
	case errors.As(a.Err, &inUse):
		g.log.Info("candidate refused", "cause", a.Err)
		answer(refuse(g.inUse(inUse)))
	case a.Err != nil:
		if errors.As(a.Err, new(*membership.VersionError)) {
			g.log.Info("candidate refused", "cause", a.Err)
		}
		answer(refuse(a.Err))
	default:
		admission := control.Admission{View: a.View, Rank: a.Rank, Decisions: a.Decisions, Start: a.Start}
		answer(admission.Encode())
	}
}

// refuse returns a reply that says why a request is refused.
func refuse(err error) []byte {
	if errors.Is(err, ErrUnreachable) {
		err = &control.Refusal{Status: control.Unreachable, Text: err.Error()}
	}
	return control.Refuse(err)
}

// openReply returns the body of a reply, or the error that it is, as programs know it.
func openReply(b []byte) ([]byte, error) {
	body, err := control.Open(b)
	var refusal *control.Refusal
	var inUse *control.InUse
	var version *control.Version
	switch {
	case errors.As(err, &refusal):
		kind := map[control.Status]error{control.Refused: ErrRefused, control.Retry: errNotYet, control.Unreachable: ErrUnreachable}[refusal.Status]
		return nil, fmt.Errorf("%w: %s", kind, refusal.Text)
	case errors.As(err, &inUse):
		return nil, &IdentityInUseError{
			ID: inUse.ID, Rank: int(inUse.Rank), Address: inUse.Address, Incarnation: inUse.Incarnation, View: inUse.View, Since: inUse.Since,
		}
	case errors.As(err, &version):
		return nil, notSpoken(version.Version)
	}
	return body, err
}

// encodeView encodes the reply to a request for the view: the view, and if the quorum is
// lost, the ranks that cannot be reached.
func encodeView(v membership.View, lost *QuorumError) []byte {
	r := control.ViewReply{View: v}
	if lost != nil {
		r.Lost = &control.Lost{Reachable: lost.Reachable, Needed: lost.Needed}
		for _, rank := range lost.Unreachable {
			r.Lost.Unreachable = append(r.Lost.Unreachable, protocol.Rank(rank))
		}
	}
	return r.Encode()
}

// viewOfReply is the view in the reply of a member, as programs see it.
func viewOfReply(r *control.ViewReply) *View {
	view := viewOf(&r.View)
	if r.Lost != nil {
		view.Err = &QuorumError{View: view.Number, Members: view.Size(), Reachable: r.Lost.Reachable, Needed: r.Lost.Needed, Unreachable: ranksOf(r.Lost.Unreachable)}
	}
	return view
}

// sendRequest sends a request to one member after the other, with exponential
// backoff, until one accepts or refuses it, no attempt can succeed any more, ctx ends, or
// so many rounds are over; 0: any number. It logs why it tries again, once for each cause.
func sendRequest(ctx context.Context, c tcp.Config, members []string, request control.Request, rounds int) ([]byte, error) {
	var last error
	var causes dedup.Causes
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		hopeless := true // for every member
		for _, address := range members {
			reply, err := requestOnce(ctx, c, address, request)
			if err == nil || errors.Is(err, ErrRefused) {
				return reply, err
			}
			if ctx.Err() != nil {
				break
			}
			last = err
			hopeless = hopeless && permanent(err)
			if _, changed := causes.Changed(address, err); changed && c.Logger != nil {
				c.Logger.Info("request is retried", "group", c.Group, "member", address, "cause", err)
			}
		}
		switch {
		case ctx.Err() != nil && last == nil:
			return nil, ctx.Err()
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w; last: %w", ctx.Err(), last)
		case hopeless || rounds == 1:
			return nil, last
		}
		rounds--
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// requestOnce sends a request to one member.
func requestOnce(ctx context.Context, c tcp.Config, address string, request control.Request) ([]byte, error) {
	b, err := tcp.Request(ctx, c, address, control.Encode(request))
	if err != nil {
		return nil, err
	}
	return openReply(b)
}

// errNotYet is a refusal for now.
var errNotYet = errors.New("not accepted yet")

// permanent reports whether a request that failed would fail again: the member
// refuses it for good, is of another group, version or authority, or the settings are
// wrong. What the network reports may pass, and so may a member that is busy or ends.
func permanent(err error) bool {
	var failed *net.OpError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.Is(err, ErrRefused), errors.As(err, new(*net.AddrError)):
		return true
	case errors.As(err, &failed) && failed.Op == "remote error": // crypto/tls: the member refuses the certificate
		return true
	case errors.Is(err, errNotYet), errors.As(err, new(*control.Restarted)), errors.Is(err, ErrUnreachable), errors.Is(err, tcp.ErrBusy), errors.Is(err, tcp.ErrUnanswered),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return false
	}
	return !errors.As(err, new(net.Error))
}

// inUse translates the refusal of a candidate whose ID a member has.
func (g *session) inUse(e *membership.InUseError) *control.InUse {
	h := &e.Holder
	return &control.InUse{
		ID: h.Identity, Rank: h.Rank, Address: h.Address, Incarnation: h.Incarnation, View: e.View,
		Since: g.admittedAt(h),
	}
}
