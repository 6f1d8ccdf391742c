package membership

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Kind is the type of a frame. Drivers see it only in [Stats].
type Kind uint8

// The kinds of frames.
const (
	// Status carries the view number of its sender, whether it is stuck: frozen for long
	// by an attempt that seems to have ended, and whether it abstains from coordinating. It
	// may ask for a status in return, and say that its sender has lost its quorum.
	Status Kind = iota
	// Report lists all members that its sender suspects, and what other members have
	// reported to it.
	Report
	// Leave says that its sender wants to leave.
	Leave
	// JoinRequest forwards a candidate to the coordinator.
	JoinRequest
	// Prepare begins a ballot, down the tree.
	Prepare
	// Promise acknowledges a Prepare, up the tree.
	Promise
	// Refuse tells a proposer that a higher ballot has been promised.
	Refuse
	// Cancel ends a ballot in which nothing was proposed, down the tree.
	Cancel
	// Propose carries the value to accept, down the tree.
	Propose
	// Accept acknowledges a Propose, up the tree.
	Accept
	// Commit carries the decided value, by corrected broadcast.
	Commit
	// Removed says that its receiver is not a member, or too far behind to catch up.
	Removed
	// Ping asks a member whether it answers.
	Ping
	// Pong answers a Ping.
	Pong
	// MetaChange says that its sender wants other attributes.
	MetaChange
	// Raise says that its sender wants a view with a higher protocol version.
	Raise

	// Kinds is the number of kinds.
	Kinds = iota
)

// String returns the kind's name as it appears in logs.
func (k Kind) String() string {
	names := [Kinds]string{
		"status", "report", "leave", "join request", "prepare", "promise",
		"refuse", "cancel", "propose", "accept", "commit", "removed", "ping", "pong", "meta change", "raise",
	}
	if k >= Kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// frame is one message between two members. Every kind has the header, and those of
// the other fields that append writes for it.
//
// Header, big endian: kind 1 byte, view 8, incarnation 8.
type frame struct {
	kind        Kind
	view        uint64 // the sender's
	incarnation uint64 // the sender's
	from        protocol.Rank

	stuck     bool       // status
	abstains  bool       // status
	asks      bool       // status
	lost      bool       // status
	reports   []report   // report
	candidate candidate  // join request
	wanted    attributes // meta change
	version   uint16     // raise
	ballot    Ballot     // prepare, promise, refuse, cancel, propose, accept
	other     Ballot     // prepare, cancel: proposed last by the owner; promise: accepted; refuse: promised
	members   set        // prepare: the participants; promise, accept: those that have acknowledged
	value     *value     // propose, commit, promise if anything was accepted
	positions []Position // promise
	root      protocol.Rank
	route     route // commit, with the root of its broadcast
}

// report is what one member suspects.
type report struct {
	by       protocol.Rank
	suspects []suspect
}

// suspect names one incarnation of a member, and in a suspicion, why it is to be removed.
type suspect struct {
	rank        protocol.Rank
	incarnation uint64
	cause       Cause // Suspected, OperatorEvicted or Revoked
}

// route is how a commit reaches its receiver.
type route uint8

const (
	byTree      route = iota // to be passed on and corrected
	leftward                 // as a correction message
	rightward                // as a correction message that asks for an answer
	toStraggler              // to a straggler, outside the broadcast
	routes
)

// The flags of a status.
const (
	statusStuck    = 1
	statusAbstains = 2
	statusAsks     = 4
	statusLost     = 8
	statusFlags    = statusStuck | statusAbstains | statusAsks | statusLost
)

// flag returns a flag if it is set.
func flag(set bool, bit uint8) uint8 {
	if set {
		return bit
	}
	return 0
}

// ErrFrame is wrapped by every error about an invalid frame.
var ErrFrame = errors.New("membership: frame makes no sense")

// append appends the encoded frame to dst.
func (f *frame) append(dst []byte) []byte {
	dst = wire.AppendUint8(dst, uint8(f.kind))
	dst = wire.AppendUint64(dst, f.view)
	dst = wire.AppendUint64(dst, f.incarnation)
	switch f.kind {
	case Status:
		dst = wire.AppendUint8(dst, flag(f.stuck, statusStuck)|flag(f.abstains, statusAbstains)|flag(f.asks, statusAsks)|
			flag(f.lost, statusLost))
	case Report:
		dst = appendReports(dst, f.reports)
	case JoinRequest:
		dst = appendBool(appendMember(dst, &f.candidate.Member), f.candidate.gone)
	case MetaChange:
		dst = appendRole(wire.AppendBytes(dst, []byte(f.wanted.meta)), f.wanted.synced, f.wanted.observer)
	case Raise:
		dst = wire.AppendUint16(dst, f.version)
	case Prepare:
		dst = wire.AppendBytes(appendBallots(dst, f.ballot, f.other), f.members)
	case Promise:
		dst = wire.AppendBytes(appendBallots(dst, f.ballot, f.other), f.members)
		dst = appendPositions(dst, f.positions)
		if f.value != nil {
			dst = appendValue(dst, f.value)
		}
	case Refuse, Cancel:
		dst = appendBallots(dst, f.ballot, f.other)
	case Propose:
		dst = appendValue(appendBallots(dst, f.ballot), f.value)
	case Accept:
		dst = wire.AppendBytes(appendBallots(dst, f.ballot), f.members)
	case Commit:
		dst = wire.AppendUint8(dst, uint8(f.route))
		dst = appendValue(wire.AppendUint32(dst, uint32(f.root)), f.value)
	}
	return dst
}

// parse decodes a frame. The frame does not alias b.
func parse(from protocol.Rank, b []byte) (*frame, error) {
	d := decoder{Decoder: wire.NewDecoder(b)}
	f := &frame{kind: Kind(d.Uint8()), view: d.Uint64(), incarnation: d.Uint64(), from: from}
	switch f.kind {
	case Status:
		flags := d.Uint8()
		if flags&^statusFlags != 0 {
			d.refuse("a status with flags %#x", flags)
		}
		f.stuck, f.abstains = flags&statusStuck != 0, flags&statusAbstains != 0
		f.asks, f.lost = flags&statusAsks != 0, flags&statusLost != 0
	case Report:
		f.reports = d.reports()
	case JoinRequest:
		f.candidate = candidate{Member: d.member(), gone: d.bool()}
	case MetaChange:
		f.wanted.meta = d.meta()
		f.wanted.synced, f.wanted.observer = d.role()
	case Raise:
		f.version = d.Uint16()
	case Prepare:
		f.ballot, f.other, f.members = d.ballot(), d.ballot(), d.set()
	case Promise:
		f.ballot, f.other, f.members, f.positions = d.ballot(), d.ballot(), d.set(), d.positions()
		if f.other != (Ballot{}) {
			f.value = d.value()
		}
	case Refuse, Cancel:
		f.ballot, f.other = d.ballot(), d.ballot()
	case Propose:
		f.ballot, f.value = d.ballot(), d.value()
	case Accept:
		f.ballot, f.members = d.ballot(), d.set()
	case Commit:
		f.route = route(d.Uint8())
		f.root, f.value = d.rank(), d.value()
		if f.route >= routes {
			return nil, fmt.Errorf("%w: route %d", ErrFrame, f.route)
		}
	case Leave, Removed, Ping, Pong:
	default:
		return nil, fmt.Errorf("%w: %v", ErrFrame, f.kind)
	}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ErrFrame, f.kind, err)
	}
	return f, nil
}
