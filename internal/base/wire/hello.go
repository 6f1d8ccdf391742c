package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/pleach-go/pleach/protocol"
)

const (
	// MaxGroup is the longest group name, in bytes.
	MaxGroup = 255

	// magic opens every Hello, so that another program that connects by mistake is
	// recognized by its first bytes.
	magic = 0x91EAC401
	// noRank encodes protocol.NoRank: it is the number after maxRank.
	noRank  = math.MaxUint32
	maxRank = noRank - 1
)

// Hello is the first frame in each direction. The side that has dialed sends its own
// at once; the other side answers with its own and a status.
type Hello struct {
	// Version is the protocol version that the sender speaks on this connection. If zero,
	// [Newest].
	Version uint16
	// Group is the name of the group, at most [MaxGroup] bytes.
	Group string
	// Size is the number of ranks of the group. It is 0 in an open group, whose
	// members come and go.
	Size uint32
	// From is the rank of the sender. It is [protocol.NoRank] for a client, which is
	// not a member and sends a request; a client need not know the size either.
	From protocol.Rank
	// To is the rank that the sender wants to reach. It is [protocol.NoRank] for a
	// client, which talks to any member.
	To protocol.Rank
	// Incarnation tells the processes that have the sender's rank one after another
	// apart: it grows with each.
	Incarnation uint64
	// Process is a random number that the sender has drawn when it started. It tells
	// processes of one incarnation apart, of which only one can be a member.
	Process uint64
	// Attempt numbers the connections between the two that the sender has requested
	// or accepted. It distinguishes a peer that has lost a connection and requests
	// a new one from a peer that requested before it got the present one.
	Attempt uint64
	// Status is the answer to the other side's Hello. The dialing side sends
	// Accepted.
	Status Status
	// Removal says more if the status is Removed.
	Removal Removal
	// Nonce is random, and new in every Hello. Code proves that the sender knows the
	// group's secret, see [Key]; it is zero if the group has none.
	Nonce [NonceSize]byte
	Code  Code
	// Features has a bit for each optional thing that the sender can use on this
	// connection. The connection uses what both sides set. Unknown bits are ignored, so a
	// feature of two members does not wait for the group's version.
	Features uint32
}

// SharedMemory is the feature to exchange frames through memory that two processes of
// one host share.
const SharedMemory uint32 = 1 << 0

// Status is the answer of a member to a connection.
type Status uint8

// The statuses of a [Hello].
const (
	// Accepted means that frames may follow.
	Accepted Status = iota
	// Refused means that something in the Hello does not match, or is malformed.
	Refused
	// Stale means that a newer incarnation, or a later attempt, of the sender is
	// known.
	Stale
	// Duplicate means that this side dials too, and that its connection is kept.
	Duplicate
	// Unsupported means that this member answers no requests of clients.
	Unsupported
	// Busy means that too many clients wait for a reply, or too many processes have
	// connected as ranks that are not known yet.
	Busy
	// WrongSecret means that the sender does not prove that it knows the group's
	// secret, or that only the sender has one.
	WrongSecret
	// WrongCertificate means that the sender's certificate is not for the member of
	// the rank it claims.
	WrongCertificate
	// Removed means that the sender is no longer a member, see [Removal].
	Removed
	// Taken means that another process with the sender's incarnation has its rank.
	Taken
	// Early means that the view that has admitted the sender is not known yet. The
	// sender tries again.
	Early
	// OtherGroup means that the receiver is of another group.
	OtherGroup
	// OtherRank means that the receiver does not have the wanted rank, or that the sender
	// cannot have its own.
	OtherRank

	statuses = iota
)

// String returns the name of the status.
func (s Status) String() string {
	names := [...]string{
		Accepted: "accepted", Refused: "refused", Stale: "stale",
		Duplicate: "duplicate", Unsupported: "unsupported", Busy: "busy",
		WrongSecret: "wrong secret", WrongCertificate: "wrong certificate",
		Removed: "removed", Taken: "taken", Early: "early",
		OtherGroup: "of another group", OtherRank: "of another rank",
	}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("unknown status %d", uint8(s))
}

// ErrHello is wrapped by every [HelloError].
var ErrHello = errors.New("bad hello")

// HelloError means that a Hello is malformed, or comes from a process that does not
// belong to this connection. It wraps [ErrHello].
type HelloError struct {
	// Field is the part of the Hello that is wrong, in lower case.
	Field string
	// Got and Want are its value and what it should be.
	Got, Want string
	// Err is the cause, if there is one.
	Err error
}

func (e *HelloError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("wire: hello: %s: %v", e.Field, e.Err)
	}
	return fmt.Sprintf("wire: hello: %s is %s, want %s", e.Field, e.Got, e.Want)
}

// Unwrap returns [ErrHello], and the cause if there is one.
func (e *HelloError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrHello}
	}
	return []error{ErrHello, e.Err}
}

func helloError(field string, got, want any) error {
	return &HelloError{Field: field, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
}

// Validate returns an error if a field is out of range.
func (h *Hello) Validate() error {
	switch {
	case len(h.Group) > MaxGroup:
		return helloError("group", fmt.Sprintf("%d bytes long", len(h.Group)), fmt.Sprintf("at most %d", MaxGroup))
	case h.Size > 0 && h.From >= protocol.Rank(h.Size):
		return helloError("rank", h.From, fmt.Sprintf("0 to %d", h.Size-1))
	case h.From < protocol.NoRank || h.From > maxRank:
		return helloError("rank", h.From, "a rank")
	case h.To < protocol.NoRank || h.To > maxRank:
		return helloError("wanted rank", h.To, "a rank")
	case h.Status >= statuses:
		return helloError("status", uint8(h.Status), fmt.Sprintf("at most %d", statuses-1))
	case len(h.Removal.ID) > maxText || len(h.Removal.Address) > maxText:
		return helloError("removal", "longer", fmt.Sprintf("%d bytes at most", maxText))
	}
	return nil
}

// AppendHello appends the payload of a Hello's frame. The Hello must be valid.
func AppendHello(dst []byte, h *Hello) []byte {
	dst = AppendUint32(dst, magic)
	dst = AppendUint16(dst, cmp.Or(h.Version, Newest())) // What precedes stays the same in all versions.
	dst = AppendUint8(dst, uint8(len(h.Group)))
	dst = append(dst, h.Group...)
	dst = AppendUint32(dst, h.Size)
	dst = AppendUint32(dst, uint32(h.From))
	dst = AppendUint32(dst, uint32(h.To))
	dst = AppendUint64(dst, h.Incarnation)
	dst = AppendUint64(dst, h.Process)
	dst = AppendUint64(dst, h.Attempt)
	dst = AppendUint8(dst, uint8(h.Status))
	if h.Status == Removed {
		dst = h.Removal.append(dst)
	}
	dst = append(append(dst, h.Nonce[:]...), h.Code[:]...)
	return AppendUint32(dst, h.Features)
}

// DecodeHello decodes the payload of a Hello's frame. Its errors are a
// [*VersionError] or a [*HelloError]. The Hello then has the version, as far as it is known.
func DecodeHello(body []byte) (Hello, error) {
	d := NewDecoder(body)
	if m := d.Uint32(); m != magic {
		return Hello{}, helloError("magic", fmt.Sprintf("%#08x", m), fmt.Sprintf("%#08x", uint32(magic)))
	}
	version := d.Uint16()
	if d.Err() == nil && !Speaks(version) {
		return Hello{Version: version}, &VersionError{version}
	}
	h := Hello{
		Version:     version,
		Group:       string(d.take(int(d.Uint8()))),
		Size:        d.Uint32(),
		From:        helloRank(d.Uint32()),
		To:          helloRank(d.Uint32()),
		Incarnation: d.Uint64(),
		Process:     d.Uint64(),
		Attempt:     d.Uint64(),
		Status:      Status(d.Uint8()),
	}
	if h.Status == Removed {
		h.Removal = d.removal()
	}
	copy(h.Nonce[:], d.take(NonceSize))
	copy(h.Code[:], d.take(CodeSize))
	h.Features = d.Uint32()
	if err := d.Finish(); err != nil {
		return Hello{Version: version}, &HelloError{Field: "length", Err: err}
	}
	return h, h.Validate()
}

func helloRank(n uint32) protocol.Rank {
	if n == noRank {
		return protocol.NoRank
	}
	return protocol.Rank(n)
}

// Answer returns what is said to a sender that has proved nothing: a status, and otherwise
// its own words. A process that is refused learns nothing by that which it could use to
// be let in.
func (h *Hello) Answer(s Status) Hello {
	return Hello{Group: h.Group, Size: h.Size, From: h.To, To: h.From, Status: s}
}

// AnswerVersion returns the version in which to answer a Hello: its own, or the closest
// that this build speaks. So its sender learns which one to try next.
func (h *Hello) AnswerVersion() uint16 { return nearest(h.Version) }

// Match returns an error if the sender of the other Hello must not talk to the
// sender of this one. A client knows neither the size of the group nor the rank of
// the member.
func (h *Hello) Match(theirs *Hello) error {
	we, they := h.From == protocol.NoRank, theirs.From == protocol.NoRank // are clients
	switch {
	case theirs.Group != h.Group:
		return helloError("group", fmt.Sprintf("%q", theirs.Group), fmt.Sprintf("%q", h.Group))
	case theirs.Size != h.Size && !we && !they:
		return helloError("size", sizeName(theirs.Size), sizeName(h.Size))
	case theirs.To != h.From && !they:
		return helloError("wanted rank", theirs.To, h.From)
	case theirs.From != h.To && !we:
		return helloError("rank", theirs.From, h.To)
	}
	return nil
}

func sizeName(size uint32) string {
	if size == 0 {
		return "open"
	}
	return fmt.Sprint(size)
}
