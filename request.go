package pleach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
// kind and, for a join, the candidate's ID, address, failure domain, meta, nonce and
// highest protocol version, and whether it replaces a live member. The reply is a status
// byte, then an error's text, or a view and, for a join, the candidate's rank in it, the
// decisions that have led to the view, and the candidate's position in every stream.
// A member sends a candidate its request back, see reach.go.
const (
	requestView      uint8 = 1
	requestJoin      uint8 = 2
	requestProgress  uint8 = 3 // see inspect.go
	requestConfirm   uint8 = 4 // see reach.go
	requestFounding  uint8 = 5 // see founding.go
	requestForce     uint8 = 6 // see force.go
	requestCatchUp   uint8 = 7 // see catchup.go
	requestDecisions uint8 = 8 // see catchup.go
	requestRaise     uint8 = 9 // see version.go
	// requestIntroduction asks a process what it is in the group; see search.go.
	requestIntroduction uint8 = 10

	replyRefused     uint8 = 0
	replyAccepted    uint8 = 1
	replyRetry       uint8 = 2 // refused now; the candidate may try again
	replyUnreachable uint8 = 3 // likewise
	replyInUse       uint8 = 4 // refused: a live member has the candidate's ID
	replyRestarted   uint8 = 5 // refused now: the process is the seat of a member
	replyVersion     uint8 = 6 // refused: the candidate does not speak the group's protocol version
)

// encodeRequest encodes a request.
func encodeRequest(kind uint8, m *membership.Member, replace bool) []byte {
	b := []byte{kind}
	for _, text := range []string{m.Identity, m.Address, m.Domain, m.Meta} {
		b = wire.AppendBytes(b, []byte(text))
	}
	b = wire.AppendUint16(wire.AppendUint64(b, m.Nonce), m.Version)
	if replace {
		return wire.AppendUint8(b, 1)
	}
	return wire.AppendUint8(b, 0)
}

// decodeRequest decodes a request.
func decodeRequest(b []byte) (kind uint8, m membership.Member, replace bool, err error) {
	d := wire.NewDecoder(b)
	kind = d.Uint8()
	m = membership.Member{Identity: string(d.Bytes()), Address: string(d.Bytes()), Domain: string(d.Bytes()), Meta: string(d.Bytes()), Nonce: d.Uint64(), Version: d.Uint16()}
	flag := d.Uint8()
	if err = d.Finish(); err == nil && (kind < requestView || kind > requestConfirm || flag > 1) {
		err = fmt.Errorf("request of kind %d with flag %d", kind, flag)
	}
	return kind, m, flag == 1, err
}

// handleRequest answers a request.
func (g *Group) handleRequest(request []byte, answer func([]byte)) {
	if len(request) > 0 {
		switch request[0] {
		case requestFounding:
			answer(g.answerFounding(request[1:]))
			return
		case requestForce:
			answer(g.answerForce(request[1:]))
			return
		case requestRaise:
			answer(g.answerRaise(request[1:]))
			return
		case requestCatchUp:
			answer(g.answerCatchUp(request[1:]))
			return
		case requestDecisions:
			g.answerDecisions(answer)
			return
		case requestIntroduction:
			g.answerIntroduction(request[1:], answer)
			return
		}
	}
	switch kind, c, replace, err := decodeRequest(request); {
	case err != nil:
		answer(encodeRefusal(err))
	case kind == requestProgress:
		answer(g.encodeProgress())
	case kind == requestView:
		_ = g.node.Do(func(protocol.Time) {
			answer(encodeView(g.machine.View(), g.lostQuorum()))
		})
	case kind == requestConfirm:
		answer(encodeRefusal(fmt.Errorf("it is member %q of this group", g.self.Identity)))
	case !dialable(c.Address):
		answer(encodeRefusal(fmt.Errorf("members cannot dial a candidate at %q: it has to advertise host:port", c.Address)))
	default:
		g.admit(c, replace, answer)
	}
}

// answerJoin answers a candidate, within node.Do.
func (g *Group) answerJoin(a *member.JoinAnswer, answer func([]byte)) {
	var inUse *membership.InUseError
	var version *membership.VersionError
	switch {
	case errors.As(a.Err, &inUse):
		g.log.Info("candidate refused", "cause", a.Err)
		answer(encodeInUse(g.inUse(inUse)))
	case errors.As(a.Err, &version):
		g.log.Info("candidate refused", "cause", a.Err)
		answer(encodeVersion(version))
	case a.Err != nil:
		answer(encodeRefusal(a.Err))
	default:
		answer(encodeReply(a))
	}
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

// encodeVersion encodes a reply that says which version a candidate would have to speak.
func encodeVersion(e *membership.VersionError) []byte {
	return wire.AppendUint16([]byte{replyVersion}, e.Version)
}

// encodeInUse encodes a reply that names the member that has a candidate's ID.
func encodeInUse(e *IdentityInUseError) []byte {
	b := wire.AppendRank([]byte{replyInUse}, protocol.Rank(e.Rank))
	b = wire.AppendUint64(wire.AppendUint64(b, e.Incarnation), e.View)
	var since uint64
	if !e.Since.IsZero() {
		since = uint64(e.Since.UnixMilli())
	}
	b = wire.AppendUint64(b, since)
	return wire.AppendBytes(wire.AppendBytes(b, []byte(e.ID)), []byte(e.Address))
}

// decodeInUse decodes the rest of such a reply.
func decodeInUse(d *wire.Decoder) error {
	e := &IdentityInUseError{Rank: int(d.Rank()), Incarnation: d.Uint64(), View: d.Uint64()}
	if since := d.Uint64(); since > 0 && since <= math.MaxInt64 {
		e.Since = time.UnixMilli(int64(since))
	}
	e.ID, e.Address = string(d.Bytes()), string(d.Bytes())
	if err := d.Finish(); err != nil {
		return err
	}
	return e
}

// encodeReply encodes a reply that accepts a request.
func encodeReply(a *member.JoinAnswer) []byte {
	b := wire.AppendBytes([]byte{replyAccepted}, a.View.Encode(nil))
	b = wire.AppendBytes(wire.AppendRank(b, a.Rank), a.Decisions.Encode(nil))
	return membership.EncodePositions(b, a.Start)
}

// joinReply is the content of a reply.
type joinReply struct {
	view      membership.View
	rank      protocol.Rank
	decisions membership.Decisions
	start     []membership.Position
}

// decodeStatus returns what follows the status of a reply, or the error that it is.
func decodeStatus(b []byte) ([]byte, error) {
	d := wire.NewDecoder(b)
	switch kind := d.Uint8(); kind {
	case replyAccepted:
		return d.Rest(), nil
	case replyRetry:
		return nil, fmt.Errorf("%w: %s", errNotYet, d.Rest())
	case replyUnreachable:
		return nil, fmt.Errorf("%w: %s", ErrUnreachable, d.Rest())
	case replyInUse:
		return nil, decodeInUse(&d)
	case replyRestarted:
		e := &restartedError{d.Rank(), d.Uint64()}
		return nil, cmp.Or(d.Finish(), error(e))
	case replyVersion:
		e := notSpoken(d.Uint16())
		return nil, cmp.Or(d.Finish(), error(e))
	default:
		return nil, fmt.Errorf("%w: %s", ErrRefused, d.Rest())
	}
}

// decodeJoin decodes the reply to a join request, after its status.
func decodeJoin(b []byte) (joinReply, error) {
	d := wire.NewDecoder(b)
	view, rank, decisions, positions := d.Bytes(), d.Rank(), d.Bytes(), d.Rest()
	if err := d.Err(); err != nil {
		return joinReply{}, err
	}
	var i joinReply
	var errs [3]error
	i.view, errs[0] = membership.DecodeView(view)
	i.start, errs[1] = membership.DecodePositions(positions)
	i.decisions, errs[2] = membership.DecodeDecisions(decisions)
	i.rank = rank
	return i, errors.Join(errs[:]...)
}

// encodeView encodes the reply to a request for the view: the view, and if the quorum is
// lost, the ranks that cannot be reached.
func encodeView(v membership.View, lost *QuorumError) []byte {
	b := wire.AppendBytes([]byte{replyAccepted}, v.Encode(nil))
	if lost == nil {
		return b
	}
	b = wire.AppendUint32(wire.AppendUint32(b, uint32(lost.Reachable)), uint32(lost.Needed))
	for _, rank := range lost.Unreachable {
		b = wire.AppendRank(b, protocol.Rank(rank))
	}
	return b
}

// decodeView decodes the reply to a request for the view, after its status.
func decodeView(b []byte) (View, error) {
	d := wire.NewDecoder(b)
	v, err := membership.DecodeView(d.Bytes())
	if err != nil {
		return View{}, err
	}
	view := *viewOf(&v)
	rest := wire.NewDecoder(d.Rest())
	if lost := (&QuorumError{View: view.Number, Members: view.Size(), Reachable: int(rest.Uint32()), Needed: int(rest.Uint32())}); rest.Err() == nil {
		for rest.Left() > 0 && rest.Err() == nil {
			lost.Unreachable = append(lost.Unreachable, int(rest.Rank()))
		}
		view.Err = lost
	}
	return view, d.Err()
}

// sendRequest sends a request to one member after the other, with exponential
// backoff, until one accepts or refuses it, no attempt can succeed any more, ctx ends, or
// so many rounds are over; 0: any number. It logs why it tries again, once for each cause.
func sendRequest(ctx context.Context, c tcp.Config, members []string, request []byte, rounds int) ([]byte, error) {
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
func requestOnce(ctx context.Context, c tcp.Config, address string, request []byte) ([]byte, error) {
	b, err := tcp.Request(ctx, c, address, request)
	if err != nil {
		return nil, err
	}
	return decodeStatus(b)
}

// errNotYet is a refusal for now.
var errNotYet = errors.New("not accepted yet")

// restartedError is the refusal of a member that was started again. It has lost its
// messages, and waits for a view that has its process as a new member.
type restartedError struct {
	rank        protocol.Rank
	incarnation uint64
}

func (e *restartedError) Error() string {
	return fmt.Sprintf("%v: this process was started again as rank %d, incarnation %d, and waits for a quorum of its group", errNotYet, e.rank, e.incarnation)
}

func (e *restartedError) Unwrap() error { return errNotYet }

// encodeRestarted encodes this refusal.
func encodeRestarted(rank protocol.Rank, incarnation uint64) []byte {
	return wire.AppendUint64(wire.AppendRank([]byte{replyRestarted}, rank), incarnation)
}

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
