package membership

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Kind is what a frame says. Drivers see it only in [Stats].
type Kind uint8

// The kinds of frames.
const (
	// Status says which view its sender is in, and whether it is stuck: frozen
	// for long, by an attempt it no longer hears of.
	Status Kind = iota
	// Report lists all that its sender suspects.
	Report
	// Leave says that its sender wants to leave.
	Leave
	// JoinRequest passes a candidate on to the coordinator.
	JoinRequest
	// Prepare begins an attempt, down the tree.
	Prepare
	// Promise acknowledges a Prepare, up the tree.
	Promise
	// Refuse tells who attempts that a higher ballot has been promised.
	Refuse
	// Void says that an attempt is off, down the tree.
	Cancel
	// Propose says what is to be accepted, down the tree.
	Propose
	// Accept acknowledges a Propose, up the tree.
	Accept
	// Commit says what has been decided, by corrected broadcast.
	Commit
	// Gone says that its receiver is no member, or too far behind to be one.
	Removed

	// Kinds is the number of kinds.
	Kinds = iota
)

// String returns the kind's name as it appears in logs.
func (k Kind) String() string {
	names := [Kinds]string{
		"status", "report", "leave", "join request", "prepare", "promise",
		"refuse", "cancel", "propose", "accept", "commit", "removed",
	}
	if k >= Kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// frame is one message between two members. Every kind has the head, and those
// of the other fields that its layout below names.
//
// Layout, big endian: kind 1, view 8, incarnation 8, then by kind.
type frame struct {
	kind        Kind
	view        uint64 // the sender's
	incarnation uint64 // the sender's
	from        protocol.Rank

	stuck     bool       // status
	suspects  []suspect  // report
	candidate Member     // knock
	ballot    Ballot     // prepare, promise, refuse, void, propose, accept
	other     Ballot     // prepare, void: proposed last by the sender; promise: accepted; refuse: promised
	members   set        // prepare: who takes part; promise, accept: who has acknowledged
	value     *value     // propose, commit, promise if anything was accepted
	positions []Position // promise
	root      protocol.Rank
	route     route // commit, with the root of its broadcast
}

// suspect is a start of a member that is held to be dead.
type suspect struct {
	rank        protocol.Rank
	incarnation uint64
}

// route is the way a commit comes.
type route uint8

const (
	byTree      route = iota // to be passed on and corrected
	leftward                 // as a correction message
	rightward                // as one that asks for an answer
	toStraggler              // to a straggler, outside the broadcast
	routes
)

// ErrFrame is what every error about a frame that makes no sense wraps.
var ErrFrame = errors.New("membership: frame makes no sense")

// append writes the frame behind what is in dst.
func (f *frame) append(dst []byte) []byte {
	dst = wire.AppendUint8(dst, uint8(f.kind))
	dst = wire.AppendUint64(dst, f.view)
	dst = wire.AppendUint64(dst, f.incarnation)
	switch f.kind {
	case Status:
		dst = appendBool(dst, f.stuck)
	case Report:
		dst = wire.AppendUint32(dst, uint32(len(f.suspects)))
		for _, s := range f.suspects {
			dst = wire.AppendUint64(wire.AppendUint32(dst, uint32(s.rank)), s.incarnation)
		}
	case JoinRequest:
		dst = appendMember(dst, &f.candidate)
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

// parse reads a frame. Nothing of it points into b.
func parse(from protocol.Rank, b []byte) (*frame, error) {
	d := decoder{Decoder: wire.NewDecoder(b)}
	f := &frame{kind: Kind(d.Uint8()), view: d.Uint64(), incarnation: d.Uint64(), from: from}
	switch f.kind {
	case Status:
		f.stuck = d.bool()
	case Report:
		for range d.count(12) {
			f.suspects = append(f.suspects, suspect{d.rank(), d.Uint64()})
		}
	case JoinRequest:
		f.candidate = d.member()
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
	case Leave, Removed:
	default:
		return nil, fmt.Errorf("%w: %v", ErrFrame, f.kind)
	}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ErrFrame, f.kind, err)
	}
	return f, nil
}
