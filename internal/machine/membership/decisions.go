package membership

// The member that lets a joiner in may die before any other has learned the decision. Then
// the joiner is the only process that knows it, and the view may need the joiner's vote. So
// a joiner begins with the last decisions of the member that has let it in, and members
// that do not know it yet take them from it.

import (
	"encoding/base64"
	"fmt"
	"iter"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Decisions are some of the last decisions of a group, in order.
type Decisions struct{ values []*value }

// decisionBytes bounds encoded decisions. The last one is always among them.
const decisionBytes = 1 << 18

// DecisionsUpTo returns the last decisions up to a view.
func (m *Machine) DecisionsUpTo(upTo uint64) Decisions {
	kept := m.history
	for len(kept) > 0 && kept[len(kept)-1].number > upTo { // not installed yet
		kept = kept[:len(kept)-1]
	}
	return Decisions{kept[max(0, len(kept)-savedCommits):]}
}

// Decisions returns the last decisions that this member has installed.
func (m *Machine) Decisions() Decisions { return m.DecisionsUpTo(m.view.Number) }

// Cut returns where the messages end that a member may still want which lacks some of the
// decisions.
func (d Decisions) Cut() (cut []Position) {
	for _, v := range d.values {
		cut = merge(cut, v.cut)
	}
	return cut
}

// Learn takes decisions from a member of a later view, which has joined since: this member
// does not know it, so it can send no frames. They count like commits.
func (m *Machine) Learn(now protocol.Time, d Decisions) error {
	m.now = now
	for _, v := range d.values {
		known := m.view.Number
		if m.acceptor.decided != nil {
			known++
		}
		if m.done != nil || v.number != known+1 {
			continue
		}
		if err := m.handleCommit(now, &frame{
			kind: Commit, from: protocol.NoRank, route: toStraggler, root: protocol.NoRank,
			value: v,
		}); err != nil {
			return err
		}
	}
	return nil
}

// Added yields the members that the decisions have added.
func (d Decisions) Added() iter.Seq[*Member] {
	return func(yield func(*Member) bool) {
		for _, v := range d.values {
			for i := range v.added {
				if !yield(&v.added[i]) {
					return
				}
			}
		}
	}
}

// historyUpTo returns the decisions for a member to begin a view with, if they lead there.
func (d Decisions) historyUpTo(view uint64) []*value {
	if n := len(d.values); n == 0 || d.values[n-1].number != view {
		return nil
	}
	return slices.Clone(d.values)
}

// Encode appends the encoded decisions to dst. If they are too long, the first are missing.
func (d Decisions) Encode(dst []byte) []byte {
	encoded, bytes := make([][]byte, 0, len(d.values)), 0
	for _, v := range slices.Backward(d.values) {
		b := appendValue(nil, v)
		bytes += len(b)
		if bytes > decisionBytes && len(encoded) > 0 {
			break
		}
		encoded = append(encoded, b)
	}
	dst = wire.AppendUint32(dst, uint32(len(encoded)))
	for _, b := range slices.Backward(encoded) {
		dst = append(dst, b...)
	}
	return dst
}

// MarshalText implements [encoding.TextMarshaler], so that a recorded config has them.
func (d Decisions) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, d.Encode(nil)), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Decisions) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err == nil {
		*d, err = DecodeDecisions(b)
	}
	return err
}

// DecodeDecisions decodes decisions.
func DecodeDecisions(b []byte) (Decisions, error) {
	d := decoder{Decoder: wire.NewDecoder(b)}
	var values []*value
	for n := d.count(valueBytes); n > 0; n-- {
		values = append(values, d.value())
	}
	if err := d.finish(); err != nil {
		return Decisions{}, fmt.Errorf("%w: decisions: %w", ErrView, err)
	}
	for i := range values {
		if len(values) > savedCommits || values[i].number != values[0].number+uint64(i) {
			return Decisions{}, fmt.Errorf("%w: %d decisions, of which that of view %d is out of place", ErrView, len(values),
				values[i].number)
		}
	}
	return Decisions{values}, nil
}
