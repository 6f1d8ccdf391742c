package wire

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/protocol"
)

const (
	// Version is the protocol version this package speaks.
	Version = 1
	// MaxGroup is the longest group name, in bytes.
	MaxGroup = 255

	// magic opens every Hello, so that something else that connects by mistake
	// is recognized by its first bytes.
	magic = 0x91EAC401
	// noRank is how a Hello has protocol.NoRank: as the number after maxRank.
	noRank  = math.MaxUint32
	maxRank = noRank - 1
)

// Hello is the first frame each way. The side that has dialed sends its own at
// once; the other answers with its own and a verdict.
type Hello struct {
	// Group is the group's name, at most [MaxGroup] bytes.
	Group string
	// Size is the number of ranks of the group. 0: it is open, its members come
	// and go.
	Size uint32
	// From is the sender's rank. [protocol.NoRank]: it is a guest, who has none
	// and asks something of a member; it need not know the size either.
	From protocol.Rank
	// To is the rank it wants to talk to. A guest says [protocol.NoRank]: it
	// talks to whoever is there.
	To protocol.Rank
	// Incarnation is larger each time the sender's process is started anew.
	Incarnation uint64
	// Attempt numbers the connections between the two that the sender has
	// asked for or agreed to. It tells a peer that has lost a connection and
	// asks for a new one from one that asked before it got the present one.
	Attempt uint64
	// Status is the answer to the other side's Hello. Who dials sends Welcome.
	Status Status
}

// Status is a member's answer to who wants to connect.
type Status uint8

// The verdicts of a [Hello].
const (
	// Accepted: frames may follow.
	Accepted Status = iota
	// Refused: something in the Hello does not match. What it is can be seen
	// by comparing it with the answer.
	Refused
	// Stale: a newer incarnation, or a later attempt, of the sender is known.
	Stale
	// Duplicate: the other side is dialing too, and its connection will be kept.
	Duplicate
	// Unsupported: guests get no answer from this member.
	Unsupported
	// Busy: too many guests are waiting for theirs.
	Busy

	statuses = iota
)

// String returns the verdict as it appears in errors.
func (v Status) String() string {
	switch v {
	case Accepted:
		return "welcome"
	case Refused:
		return "refused: the two members' settings do not match"
	case Stale:
		return "refused: a newer incarnation or connection of this rank is known"
	case Duplicate:
		return "refused: the other side is dialing too"
	case Unsupported:
		return "refused: this member does not answer guests"
	case Busy:
		return "refused: too many guests are waiting at this member"
	default:
		return fmt.Sprintf("unknown verdict %d", uint8(v))
	}
}

// VersionError says that the other side speaks another version.
type VersionError struct {
	Ours, Theirs uint16
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("wire: the other side speaks protocol version %d, this one %d", e.Theirs, e.Ours)
}

// HelloError is a Hello that is malformed, or from somebody who should not be
// talking to us.
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

// Unwrap returns the cause.
func (e *HelloError) Unwrap() error { return e.Err }

func helloError(field string, got, want any) error {
	return &HelloError{Field: field, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
}

// Validate reports what of a Hello cannot be.
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
		return helloError("verdict", uint8(h.Status), fmt.Sprintf("at most %d", statuses-1))
	}
	return nil
}

// AppendHello appends the body of a Hello's frame. The Hello must be valid.
func AppendHello(dst []byte, h *Hello) []byte {
	dst = AppendUint32(dst, magic)
	dst = AppendUint16(dst, Version) // What precedes stays so in all versions.
	dst = AppendUint8(dst, uint8(len(h.Group)))
	dst = append(dst, h.Group...)
	dst = AppendUint32(dst, h.Size)
	dst = AppendUint32(dst, uint32(h.From))
	dst = AppendUint32(dst, uint32(h.To))
	dst = AppendUint64(dst, h.Incarnation)
	dst = AppendUint64(dst, h.Attempt)
	return AppendUint8(dst, uint8(h.Status))
}

// DecodeHello decodes the body of a Hello's frame. Its errors are a
// [*VersionError] or a [*HelloError].
func DecodeHello(body []byte) (Hello, error) {
	d := NewDecoder(body)
	if m := d.Uint32(); m != magic {
		return Hello{}, helloError("magic", fmt.Sprintf("%#08x", m), fmt.Sprintf("%#08x", uint32(magic)))
	}
	if v := d.Uint16(); d.Err() == nil && v != Version {
		return Hello{}, &VersionError{Ours: Version, Theirs: v}
	}
	h := Hello{
		Group:       string(d.take(int(d.Uint8()))),
		Size:        d.Uint32(),
		From:        helloRank(d.Uint32()),
		To:          helloRank(d.Uint32()),
		Incarnation: d.Uint64(),
		Attempt:     d.Uint64(),
		Status:      Status(d.Uint8()),
	}
	if err := d.Finish(); err != nil {
		return Hello{}, &HelloError{Field: "length", Err: err}
	}
	return h, h.Validate()
}

func helloRank(n uint32) protocol.Rank {
	if n == noRank {
		return protocol.NoRank
	}
	return protocol.Rank(n)
}

// Match reports what keeps the sender of another Hello from talking to the
// sender of this one. A guest does not know the group's size, nor whom it talks to.
func (h *Hello) Match(theirs *Hello) error {
	we, they := h.From == protocol.NoRank, theirs.From == protocol.NoRank // are guests
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
