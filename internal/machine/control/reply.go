package control

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Status is the first byte of a reply.
type Status uint8

// The statuses of replies.
const (
	Refused     Status = iota
	Accepted           // what the request asks for follows
	Retry              // refused now; the process may ask again
	Unreachable        // refused now: the candidate was not reached
	inUse              // refused: a live member has the candidate's ID; an [*InUse] follows
	restarted          // refused now: the process is the restarted voter of a member; a [*Restarted] follows
	version            // refused: the candidate does not speak the group's protocol version; a [*Version] follows
	noQuorum           // refused: the other members are too few to decide; a [*NoQuorum] follows
	tooOld             // refused: the group has no observers in its protocol version; a [*TooOld] follows
)

// Refusal is a reply that is an error, with a text for people.
type Refusal struct {
	Status Status
	Text   string
}

func (e *Refusal) Error() string { return e.Text }

// InUse is the refusal of a candidate whose ID a live member has.
type InUse struct {
	Rank              protocol.Rank
	Incarnation, View uint64
	Since             time.Time // when the member has joined; zero: not known
	ID, Address       string
}

func (e *InUse) Error() string { return fmt.Sprintf("a live member has the ID %q", e.ID) }

// Restarted is the refusal of a member that was started again. It has lost its messages,
// and waits for a view that has its process as a new member.
type Restarted struct {
	Rank        protocol.Rank
	Incarnation uint64
}

func (e *Restarted) Error() string {
	return fmt.Sprintf("not accepted yet: this process was started again as rank %d, incarnation %d, and waits for a quorum of its group", e.Rank, e.Incarnation)
}

// Version is the refusal of a candidate that does not speak the group's protocol version.
type Version struct{ Version uint16 }

func (e *Version) Error() string {
	return fmt.Sprintf("the group speaks protocol version %d", e.Version)
}

// TooOld is the refusal of an observer by a group whose protocol version has none.
type TooOld struct{ Version uint16 }

func (e *TooOld) Error() string {
	return fmt.Sprintf("the group has protocol version %d, and observers need %d", e.Version, membership.ObserverVersion)
}

// NoQuorum is the refusal of an operator's request that needs a quorum.
type NoQuorum struct {
	View                       uint64
	Reachable, Members, Needed int
}

func (e *NoQuorum) Error() string {
	return fmt.Sprintf("%d of %d members of view %d could decide, and %d are needed", e.Reachable, e.Members, e.View,
		e.Needed)
}

// Accept returns a reply that accepts a request, with its body.
func Accept(body []byte) []byte { return append([]byte{uint8(Accepted)}, body...) }

// Refuse returns a reply that says why a request is refused.
func Refuse(err error) []byte {
	var refusal *Refusal
	var used *InUse
	var again *Restarted
	var old *Version
	var newer *membership.VersionError
	var early *membership.ObserverVersionError
	var lost *membership.QuorumError
	switch {
	case errors.As(err, &used):
		return used.append(nil)
	case errors.As(err, &again):
		return wire.AppendUint64(wire.AppendRank([]byte{uint8(restarted)}, again.Rank), again.Incarnation)
	case errors.As(err, &old):
		return wire.AppendUint16([]byte{uint8(version)}, old.Version)
	case errors.As(err, &newer):
		return wire.AppendUint16([]byte{uint8(version)}, newer.Version)
	case errors.As(err, &early):
		return wire.AppendUint16([]byte{uint8(tooOld)}, early.Version)
	case errors.As(err, &lost):
		b := wire.AppendUint64([]byte{uint8(noQuorum)}, lost.View)
		return wire.AppendUint32(wire.AppendUint32(wire.AppendUint32(b, uint32(lost.Reachable)), uint32(lost.Members)),
			uint32(lost.Needed))
	case errors.As(err, &refusal):
		return append([]byte{uint8(refusal.Status)}, err.Error()...)
	case passes(err):
		return append([]byte{uint8(Retry)}, err.Error()...)
	}
	return append([]byte{uint8(Refused)}, err.Error()...)
}

// passes reports whether a candidate may try again. A member that is out of the group
// itself must not refuse for the group: another member may accept.
func passes(err error) bool {
	return errors.Is(err, membership.ErrTimeout) || errors.Is(err, membership.ErrFull) ||
		errors.Is(err, membership.ErrLeft) || errors.As(err, new(*membership.EvictedError))
}

func (e *InUse) append(b []byte) []byte {
	b = wire.AppendRank(append(b, uint8(inUse)), e.Rank)
	b = wire.AppendUint64(wire.AppendUint64(b, e.Incarnation), e.View)
	var since uint64
	if !e.Since.IsZero() {
		since = uint64(e.Since.UnixMilli())
	}
	b = wire.AppendUint64(b, since)
	return wire.AppendBytes(wire.AppendBytes(b, []byte(e.ID)), []byte(e.Address))
}

func decodeInUse(d *wire.Decoder) error {
	e := &InUse{Rank: d.Rank(), Incarnation: d.Uint64(), View: d.Uint64()}
	if since := d.Uint64(); since > 0 && since <= math.MaxInt64 {
		e.Since = time.UnixMilli(int64(since))
	}
	e.ID, e.Address = string(d.Bytes()), string(d.Bytes())
	return cmp.Or(d.Finish(), error(e))
}

// Open returns the body of a reply, or the error that it is: one of the types of this
// file, if the reply is valid.
func Open(b []byte) (body []byte, err error) {
	d := wire.NewDecoder(b)
	switch status := Status(d.Uint8()); status {
	case Accepted:
		return d.Rest(), nil
	case inUse:
		return nil, decodeInUse(&d)
	case restarted:
		e := &Restarted{d.Rank(), d.Uint64()}
		return nil, cmp.Or(d.Finish(), error(e))
	case version:
		e := &Version{d.Uint16()}
		return nil, cmp.Or(d.Finish(), error(e))
	case tooOld:
		e := &TooOld{d.Uint16()}
		return nil, cmp.Or(d.Finish(), error(e))
	case noQuorum:
		e := &NoQuorum{d.Uint64(), int(d.Uint32()), int(d.Uint32()), int(d.Uint32())}
		return nil, cmp.Or(d.Finish(), error(e))
	case Retry, Unreachable:
		return nil, &Refusal{status, string(d.Rest())}
	}
	return nil, &Refusal{Refused, string(d.Rest())}
}

// Admission is the body of the reply to a [Join]: the view, the candidate's rank in it,
// the decisions that have led there, and the candidate's position in every stream.
type Admission struct {
	View      membership.View
	Rank      protocol.Rank
	Decisions membership.Decisions
	Start     []membership.Position
}

// Encode returns the reply that has the admission.
func (a *Admission) Encode() []byte {
	b := wire.AppendBytes([]byte{uint8(Accepted)}, a.View.Encode(nil))
	b = wire.AppendBytes(wire.AppendRank(b, a.Rank), a.Decisions.Encode(nil))
	return membership.EncodePositions(b, a.Start)
}

// DecodeAdmission decodes the body of a reply.
func DecodeAdmission(b []byte) (a Admission, err error) {
	d := wire.NewDecoder(b)
	view, rank, decisions, positions := d.Bytes(), d.Rank(), d.Bytes(), d.Rest()
	if err := d.Err(); err != nil {
		return a, err
	}
	var errs [3]error
	a.Rank = rank
	a.View, errs[0] = membership.DecodeView(view)
	a.Start, errs[1] = membership.DecodePositions(positions)
	a.Decisions, errs[2] = membership.DecodeDecisions(decisions)
	return a, errors.Join(errs[:]...)
}

// ViewReply is the body of the reply to a [View].
type ViewReply struct {
	View membership.View
	Lost *Lost // nil: the member has its quorum
}

// Lost is why a member has no quorum.
type Lost struct {
	Reachable, Needed int
	Unreachable       []protocol.Rank
}

// Encode returns the reply that has the view.
func (r *ViewReply) Encode() []byte {
	b := wire.AppendBytes([]byte{uint8(Accepted)}, r.View.Encode(nil))
	if r.Lost == nil {
		return b
	}
	b = wire.AppendUint32(wire.AppendUint32(b, uint32(r.Lost.Reachable)), uint32(r.Lost.Needed))
	for _, rank := range r.Lost.Unreachable {
		b = wire.AppendRank(b, rank)
	}
	return b
}

// DecodeView decodes the body of a reply.
func DecodeView(b []byte) (r ViewReply, err error) {
	d := wire.NewDecoder(b)
	r.View, err = membership.DecodeView(d.Bytes())
	if err != nil {
		return r, err
	}
	rest := wire.NewDecoder(d.Rest())
	lost := &Lost{Reachable: int(rest.Uint32()), Needed: int(rest.Uint32())}
	if rest.Err() == nil {
		for rest.Left() > 0 && rest.Err() == nil {
			lost.Unreachable = append(lost.Unreachable, rest.Rank())
		}
		r.Lost = lost
	}
	return r, d.Err()
}
