package membership

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// A member's attributes are what it tells the others about itself: its meta, and whether it
// has the state of the group. They are part of the view, so all members of a view see the
// same, and a change of them is a view change like any other.

// MaxMeta is the longest meta, in bytes.
const MaxMeta = 512

// attributes of a member may change while it is one.
type attributes struct {
	meta   string
	synced bool
}

// attributes returns those of a member.
func (m *Member) attributes() attributes { return attributes{m.Meta, m.Synced} }

// metaRequest is a member's request at the coordinator. The member repeats it; when that
// ends, the coordinator forgets it.
type metaRequest struct {
	suspect
	attributes
	until protocol.Time
}

// SetMeta asks for a view in which this member has another meta. A later call replaces the
// request.
func (m *Machine) SetMeta(now protocol.Time, meta string) error {
	m.now = now
	if len(meta) > MaxMeta {
		return fmt.Errorf("%w: a meta of %d bytes: at most %d", ErrView, len(meta), MaxMeta)
	}
	m.wanted.meta = meta
	m.reporter.changed()
	return nil
}

// SetSynced asks for a view in which this member has the state of the group.
func (m *Machine) SetSynced(now protocol.Time) {
	m.now, m.wanted.synced = now, true
	m.reporter.changed()
}

// changesMeta reports whether this member waits for a view with its new attributes.
func (m *Machine) changesMeta() bool {
	return m.view.Members.At(m.self).attributes() != m.wanted
}

// handleMetaChange adds, replaces or renews the request of a member.
func (m *Machine) handleMetaChange(now protocol.Time, r protocol.Rank, incarnation uint64, a attributes) {
	i := slices.IndexFunc(m.metas, func(q metaRequest) bool { return q.rank == r })
	if m.view.Members.Find(r).attributes() == a { // it is fulfilled, or withdrawn
		if i >= 0 {
			m.metas = slices.Delete(m.metas, i, i+1)
		}
		return
	}
	q := metaRequest{suspect{rank: r, incarnation: incarnation}, a, now + m.lease()}
	if i >= 0 {
		m.metas[i] = q
		return
	}
	m.metas = append(m.metas, q)
	m.window.note(now)
}

// pruneMetas forgets the requests that the view has fulfilled, and those of members that
// are not in it.
func (m *Machine) pruneMetas() {
	m.metas = slices.DeleteFunc(m.metas, func(q metaRequest) bool {
		of := m.view.Members.Find(q.rank)
		return of == nil || of.Incarnation != q.incarnation || of.attributes() == q.attributes
	})
}

// composeMetas adds the requests to a value, of members that it does not remove, as far as
// there is room in a frame.
func (m *Machine) composeMetas(v *value, bytes int) {
	for _, q := range m.metas {
		i, _ := m.view.index(q.rank)
		if v.removed.has(i) {
			continue
		}
		changed := *m.view.Members.At(i)
		changed.Meta, changed.Synced = q.meta, q.synced
		bytes += len(appendMember(nil, &changed))
		if bytes > addedBytes {
			break
		}
		v.changed = append(v.changed, changed)
	}
	slices.SortFunc(v.changed, byRank)
}

// checkChanged returns an error unless a changed member differs in its attributes only from
// one that stays.
func (v *value) checkChanged(i int, stay Members) error {
	m := v.changed[i]
	is := stay.Find(m.Rank)
	if is == nil || i > 0 && m.Rank <= v.changed[i-1].Rank {
		return fmt.Errorf("%w: view %d changes rank %d, which is not in it", ErrView, v.number, m.Rank)
	}
	if err := m.check(); err != nil {
		return err
	}
	m.Meta, m.Synced = is.Meta, is.Synced
	if m != *is {
		return fmt.Errorf("%w: view %d changes more of rank %d than its attributes", ErrView, v.number, m.Rank)
	}
	return nil
}
