package membership

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Encode appends the view to dst, for a joiner or a file.
func (v *View) Encode(dst []byte) []byte {
	dst = wire.AppendUint64(dst, v.Number)
	dst = wire.AppendUint32(wire.AppendUint16(dst, v.Version), uint32(v.Slots))
	for _, list := range []Members{v.Members, v.Former} {
		dst = wire.AppendUint32(dst, uint32(list.Len()))
		for _, m := range list.All() {
			dst = appendMember(dst, m)
		}
	}
	return dst
}

// DecodeView decodes a view that Encode wrote. The view does not alias b.
func DecodeView(b []byte) (View, error) {
	d := decoder{Decoder: wire.NewDecoder(b)}
	v := View{Number: d.Uint64(), Version: d.Uint16(), Slots: protocol.Rank(d.Uint32())}
	members, former := d.memberList(), d.memberList()
	if err := d.finish(); err != nil {
		return View{}, fmt.Errorf("%w: %w", ErrView, err)
	}
	var err1, err2 error
	v.Members, err1 = membersOf(members)
	v.Former, err2 = membersOf(former)
	if err := errors.Join(err1, err2); err != nil {
		return View{}, err
	}
	return v, v.check()
}

// EncodePositions appends a cut to dst: it goes to a joiner with the view.
func EncodePositions(dst []byte, cut []Position) []byte { return appendPositions(dst, cut) }

// DecodePositions decodes a cut that EncodePositions wrote.
func DecodePositions(b []byte) ([]Position, error) {
	d := decoder{Decoder: wire.NewDecoder(b)}
	cut := d.positions()
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return cut, nil
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return wire.AppendUint8(dst, 1)
	}
	return wire.AppendUint8(dst, 0)
}

// The flags of a member, and of the attributes that it wants.
const (
	memberSynced   = 1
	memberObserver = 2 // from ObserverVersion on
)

func appendRole(dst []byte, synced, observer bool) []byte {
	return wire.AppendUint8(dst, flag(synced, memberSynced)|flag(observer, memberObserver))
}

func appendBallots(dst []byte, ballots ...Ballot) []byte {
	for _, b := range ballots {
		dst = wire.AppendUint32(wire.AppendUint32(dst, b.Round), uint32(b.Rank))
	}
	return dst
}

func appendMember(dst []byte, m *Member) []byte {
	dst = wire.AppendUint32(dst, uint32(m.Rank))
	dst = wire.AppendUint64(wire.AppendUint64(dst, m.Incarnation), m.Nonce)
	for _, text := range []string{m.Identity, m.Address, m.Domain, m.Meta} {
		dst = wire.AppendBytes(dst, []byte(text))
	}
	return wire.AppendUint16(appendRole(dst, m.Synced, m.Observer), m.Version)
}

func appendMembers(dst []byte, members []Member) []byte {
	dst = wire.AppendUint32(dst, uint32(len(members)))
	for i := range members {
		dst = appendMember(dst, &members[i])
	}
	return dst
}

func appendPositions(dst []byte, positions []Position) []byte {
	dst = wire.AppendUint32(dst, uint32(len(positions)))
	for _, h := range positions {
		dst = wire.AppendUint64(wire.AppendUint32(dst, uint32(h.Root)), h.Incarnation)
		dst = wire.AppendUint32(wire.AppendUint64(dst, h.Next), uint32(h.Holder))
	}
	return dst
}

func appendReports(dst []byte, reports []report) []byte {
	dst = wire.AppendUint32(dst, uint32(len(reports)))
	for _, r := range reports {
		dst = wire.AppendUint32(wire.AppendUint32(dst, uint32(r.by)), uint32(len(r.suspects)))
		for _, s := range r.suspects {
			dst = wire.AppendUint64(wire.AppendUint32(dst, uint32(s.cause)<<causeShift|uint32(s.rank)), s.incarnation)
		}
	}
	return dst
}

func appendValue(dst []byte, v *value) []byte {
	dst = wire.AppendUint16(wire.AppendUint64(dst, v.number), v.version)
	dst = wire.AppendUint32(dst, uint32(v.slots))
	dst = appendMembers(appendReasons(wire.AppendBytes(dst, v.removed), v), v.added)
	return appendPositions(appendMembers(dst, v.changed), v.cut)
}

// appendReasons appends why members are removed. How many are is known from the set.
func appendReasons(dst []byte, v *value) []byte {
	for k := range v.removed.count() {
		why := v.reason(k)
		dst = wire.AppendUint32(wire.AppendUint8(dst, uint8(why.cause)), uint32(why.by))
	}
	return dst
}

// decoder reads the fields of frames. It checks every count against the bytes that
// are left before it allocates.
type decoder struct {
	wire.Decoder
	err error // the first violation of a limit
}

// The fewest bytes of an encoded Member, Position, report, suspect and value.
const (
	memberBytes   = 4 + 8 + 8 + 4*4 + 1 + 2
	positionBytes = 4 + 8 + 8 + 4
	reportBytes   = 4 + 4
	suspectBytes  = 4 + 8
	valueBytes    = 8 + 2 + 4 + 4*4
)

var errLimit = errors.New("over the limit")

// finish returns the first error, or one if bytes are left over.
func (d *decoder) finish() error { return errors.Join(d.err, d.Finish()) }

func (d *decoder) refuse(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errLimit, fmt.Sprintf(format, args...))
	}
}

// count reads the length of a list whose elements have at least the given size.
func (d *decoder) count(each int) int {
	n := d.Uint32()
	if uint64(n)*uint64(each) > uint64(d.left()) {
		d.refuse("%d things in %d bytes", n, d.left())
		return 0
	}
	return int(n)
}

func (d *decoder) left() int {
	peek := d.Decoder // a copy, so nothing is consumed
	return len(peek.Rest())
}

func (d *decoder) bool() bool {
	b := d.Uint8()
	if b > 1 {
		d.refuse("%d is neither true nor false", b)
	}
	return b == 1
}

func (d *decoder) role() (synced, observer bool) {
	b := d.Uint8()
	if b > memberSynced|memberObserver || b >= memberObserver && wire.Newest() < ObserverVersion {
		d.refuse("a member with flags %#x", b)
	}
	return b&memberSynced != 0, b&memberObserver != 0
}

// rank reads a rank; a candidate has NoRank.
func (d *decoder) rank() protocol.Rank {
	r := d.Uint32()
	if r == ^uint32(0) {
		return protocol.NoRank
	}
	if r >= MaxSlots {
		d.refuse("rank %d", r)
		return 0
	}
	return protocol.Rank(r)
}

func (d *decoder) ballot() Ballot {
	b := Ballot{d.Uint32(), d.rank()}
	if b.Round > maxRound {
		d.refuse("round %d", b.Round)
	}
	return b
}

func (d *decoder) set() set {
	b := d.Bytes()
	if len(b) > (MaxSlots+7)/8 {
		d.refuse("a set of %d bytes", len(b))
		return nil
	}
	return slices.Clone(set(b))
}

func (d *decoder) text() string {
	b := d.Bytes()
	if len(b) > MaxText {
		d.refuse("a name of %d bytes", len(b))
		return ""
	}
	return string(b)
}

func (d *decoder) meta() string {
	b := d.Bytes()
	if len(b) > MaxMeta {
		d.refuse("a meta of %d bytes", len(b))
		return ""
	}
	return string(b)
}

func (d *decoder) member() Member {
	m := Member{Rank: d.rank(), Incarnation: d.Uint64(), Nonce: d.Uint64()}
	m.Identity, m.Address, m.Domain, m.Meta = d.text(), d.text(), d.text(), d.meta()
	m.Synced, m.Observer = d.role()
	m.Version = d.Uint16()
	return m
}

func (d *decoder) memberList() []Member {
	n := d.count(memberBytes)
	if n == 0 {
		return nil
	}
	members := make([]Member, n)
	for i := range members {
		members[i] = d.member()
	}
	return members
}

// positions reads a list, which must be in order because merge relies on it.
func (d *decoder) positions() []Position {
	n := d.count(positionBytes)
	if n == 0 {
		return nil
	}
	positions := make([]Position, n)
	for i := range positions {
		positions[i] = Position{d.rank(), d.Uint64(), d.Uint64(), d.rank()}
		if i > 0 && compareStream(positions[i-1], positions[i]) >= 0 {
			d.refuse("root %d is out of order", positions[i].Root)
		}
	}
	return positions
}

func (d *decoder) reports() (reports []report) {
	for range d.count(reportBytes) {
		r := report{by: d.rank()}
		for range d.count(suspectBytes) {
			r.suspects = append(r.suspects, d.suspect())
		}
		reports = append(reports, r)
	}
	return reports
}

// causeShift is where the number of a suspect's rank has its cause.
const causeShift = 24

func (d *decoder) suspect() suspect {
	word := d.Uint32()
	s := suspect{protocol.Rank(word & (1<<causeShift - 1)), d.Uint64(), Cause(word >> causeShift)}
	if s.rank >= MaxSlots || s.cause != Suspected && (!s.cause.evicts() || wire.Newest() < wire.EvictVersion) {
		d.refuse("rank %d suspected with cause %d", s.rank, s.cause)
	}
	return s
}

func (d *decoder) value() *value {
	v := &value{number: d.Uint64(), version: d.Uint16(), slots: protocol.Rank(d.Uint32())}
	v.removed = d.set()
	v.reasons = d.reasons(v.removed.count())
	v.added, v.changed, v.cut = d.memberList(), d.memberList(), d.positions()
	return v
}

func (d *decoder) reasons(n int) []reason {
	if n == 0 {
		return nil
	}
	reasons := make([]reason, n)
	for i := range reasons {
		reasons[i] = reason{Cause(d.Uint8()), d.rank()}
		if c := reasons[i].cause; !c.removes() || c.evicts() && wire.Newest() < wire.EvictVersion {
			d.refuse("reason with cause %d", reasons[i].cause)
		}
	}
	return reasons
}
