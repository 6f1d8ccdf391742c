package pleach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/dedup"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// A process that is not a member sends a member a request: for the view, to join,
// or for the progress of its collective calls. A request is a byte that tells its
// kind and, for a join, the candidate's ID, address, failure domain, incarnation and
// nonce. The reply is a status byte, then an error's text, or a view, the candidate's
// rank in it and its position in every stream. A member sends a candidate its request
// back, see reach.go.
const (
	requestView     uint8 = 1
	requestJoin     uint8 = 2
	requestProgress uint8 = 3 // see inspect.go
	requestConfirm  uint8 = 4 // see reach.go

	replyRefused     uint8 = 0
	replyAccepted    uint8 = 1
	replyRetry       uint8 = 2 // refused now; the candidate may try again
	replyUnreachable uint8 = 3 // likewise
)

// encodeRequest encodes a request.
func encodeRequest(kind uint8, m *membership.Member, nonce []byte) []byte {
	b := []byte{kind}
	for _, text := range []string{m.Identity, m.Address, m.Domain} {
		b = wire.AppendBytes(b, []byte(text))
	}
	return wire.AppendBytes(wire.AppendUint64(b, m.Incarnation), nonce)
}

// decodeRequest decodes a request.
func decodeRequest(b []byte) (kind uint8, m membership.Member, nonce []byte, err error) {
	d := wire.NewDecoder(b)
	kind = d.Uint8()
	m = membership.Member{Identity: string(d.Bytes()), Address: string(d.Bytes()), Domain: string(d.Bytes()), Incarnation: d.Uint64()}
	nonce = d.Bytes()
	if err = d.Finish(); err == nil && (kind < requestView || kind > requestConfirm) {
		err = fmt.Errorf("request of kind %d", kind)
	}
	return kind, m, nonce, err
}

// handleRequest answers a request.
func (g *Group) handleRequest(request []byte, answer func([]byte)) {
	switch kind, c, nonce, err := decodeRequest(request); {
	case err != nil:
		answer(encodeRefusal(err))
	case kind == requestProgress:
		answer(g.encodeProgress())
	case kind == requestView:
		_ = g.node.Do(func(protocol.Time) {
			answer(encodeReply(&member.JoinAnswer{View: g.machine.View(), Rank: protocol.NoRank, Start: g.machine.Positions()}))
		})
	case kind == requestConfirm:
		answer(encodeRefusal(fmt.Errorf("it is member %q of this group", g.self.Identity)))
	case !dialable(c.Address):
		answer(encodeRefusal(fmt.Errorf("members cannot dial a candidate at %q: it has to advertise host:port", c.Address)))
	default:
		g.admit(c, nonce, answer)
	}
}

// answerJoin answers a candidate that the group has decided about.
func answerJoin(a *member.JoinAnswer, answer func([]byte)) {
	if a.Err != nil {
		answer(encodeRefusal(a.Err))
		return
	}
	answer(encodeReply(a))
}

// encodeRefusal encodes a reply that says why a request is refused.
func encodeRefusal(err error) []byte {
	kind := replyRefused
	// A member that is out of the group itself must not refuse for the group:
	// another member may accept.
	var evicted *membership.EvictedError
	if errors.Is(err, membership.ErrTimeout) || errors.Is(err, membership.ErrFull) || errors.Is(err, membership.ErrLeft) || errors.As(err, &evicted) {
		kind = replyRetry
	}
	if errors.Is(err, ErrUnreachable) {
		kind = replyUnreachable
	}
	return append([]byte{kind}, err.Error()...)
}

// encodeReply encodes a reply that accepts a request.
func encodeReply(a *member.JoinAnswer) []byte {
	b := wire.AppendBytes([]byte{replyAccepted}, a.View.Encode(nil))
	b = wire.AppendRank(b, a.Rank)
	return membership.EncodePositions(b, a.Start)
}

// joinReply is the content of a reply.
type joinReply struct {
	view  membership.View
	rank  protocol.Rank
	start []membership.Position
}

// decodeReply decodes a reply.
func decodeReply(b []byte) (joinReply, error) {
	d := wire.NewDecoder(b)
	switch kind := d.Uint8(); kind {
	case replyAccepted:
	case replyRetry:
		return joinReply{}, fmt.Errorf("%w: %s", errNotYet, d.Rest())
	case replyUnreachable:
		return joinReply{}, fmt.Errorf("%w: %s", ErrUnreachable, d.Rest())
	default:
		return joinReply{}, fmt.Errorf("%w: %s", ErrRefused, d.Rest())
	}
	view, rank, positions := d.Bytes(), d.Rank(), d.Rest()
	if err := d.Err(); err != nil {
		return joinReply{}, err
	}
	var i joinReply
	var errs [2]error
	i.view, errs[0] = membership.DecodeView(view)
	i.start, errs[1] = membership.DecodePositions(positions)
	i.rank = rank
	return i, errors.Join(errs[:]...)
}

// sendRequest sends a request to one member after the other, with exponential
// backoff, until one accepts or refuses it, no attempt can succeed any more, or ctx
// ends. It logs why it tries again, once for each cause.
func sendRequest(ctx context.Context, c tcp.Config, members []string, request []byte) (joinReply, error) {
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
			return joinReply{}, ctx.Err()
		case ctx.Err() != nil:
			return joinReply{}, fmt.Errorf("%w; last: %w", ctx.Err(), last)
		case hopeless:
			return joinReply{}, last
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// requestOnce sends a request to one member.
func requestOnce(ctx context.Context, c tcp.Config, address string, request []byte) (joinReply, error) {
	b, err := tcp.Request(ctx, c, address, request)
	if err != nil {
		return joinReply{}, err
	}
	return decodeReply(b)
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
	case errors.Is(err, errNotYet), errors.Is(err, ErrUnreachable), errors.Is(err, tcp.ErrBusy), errors.Is(err, tcp.ErrUnanswered),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return false
	}
	return !errors.As(err, new(net.Error))
}
