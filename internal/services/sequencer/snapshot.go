package sequencer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// What a joiner needs: the order where a view begins. The same bytes at every member.

// Snapshot returns the order so far, without what is delivered.
func (m *Machine) Snapshot() []byte {
	b := wire.AppendUint64(wire.AppendUint64(nil, m.view), m.numbered)
	origins := slices.SortedFunc(maps.Keys(m.last), func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	b = appendMembers(b, origins)
	for _, o := range origins {
		b = wire.AppendUint64(b, m.last[o])
	}
	b = wire.AppendUint32(b, uint32(len(m.waiting)))
	for i := range m.waiting {
		w := &m.waiting[i]
		b = appendBody(appendMember(b, w.Origin), w.Topic, w.Data)
	}
	return b
}

// Restore makes a machine that has received nothing continue another one's order.
func (m *Machine) Restore(b []byte) error {
	d := wire.NewDecoder(b)
	o := order{view: d.Uint64(), leader: -1, numbered: d.Uint64(), last: make(map[Member]uint64)}
	for _, origin := range decodeMembers(&d) {
		o.last[origin] = d.Uint64()
	}
	waiting := d.Uint32()
	for i := range waiting {
		if d.Err() != nil {
			break
		}
		origin, body := decodeMember(&d), decodeBody(&d)
		o.waiting = append(o.waiting, Message{origin, o.numbered - uint64(waiting-i) + 1, body.topic, body.data})
	}
	if err := d.Finish(); err != nil {
		return fmt.Errorf("ordered: snapshot: %w", err)
	}
	m.order = o
	return nil
}

// AppendState appends the order to b, for RestoreState. What the program keeps follows.
func AppendState(b []byte, m *Machine) []byte {
	order := m.Snapshot()
	return append(wire.AppendUint64(b, uint64(len(order))), order...)
}

// RestoreState restores the order, and returns what follows it.
func RestoreState(b []byte, m *Machine) (program []byte, err error) {
	d := wire.NewDecoder(b)
	size, rest := d.Uint64(), d.Rest()
	if d.Err() != nil || size > uint64(len(rest)) {
		return nil, fmt.Errorf("ordered: a snapshot of %d bytes is cut short", len(b))
	}
	return rest[size:], m.Restore(rest[:size])
}
