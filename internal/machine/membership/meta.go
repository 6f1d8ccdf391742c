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
	meta     string
	synced   bool
	observer bool
}

// attributes returns those of a member.
func (m *Member) attributes() attributes { return attributes{m.Meta, m.Synced, m.Observer} }

// with returns a member with other attributes.
func (m Member) with(a attributes) Member {
	m.Meta, m.Synced, m.Observer = a.meta, a.synced, a.observer
	return m
}

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
	member := m.view.Members.Find(r)
	if a.observer && m.observerRefusal(member, true) != nil {
		a.observer = member.Observer // the member learns by the next view that it is the last voter
	}
	if member.attributes() == a { // it is fulfilled, or withdrawn
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

// pruneMetas forgets the requests that the view has fulfilled, those of members that are not
// in it, and that of the last voter to be an observer.
func (m *Machine) pruneMetas() {
	m.wanted.observer = m.wanted.observer && !m.electorate.last(m.self)
	m.metas = slices.DeleteFunc(m.metas, func(q metaRequest) bool {
		i, ok := m.view.index(q.rank)
		if !ok || q.observer && m.electorate.last(i) {
			return true
		}
		of := m.view.Members.At(i)
		return of.Incarnation != q.incarnation || of.attributes() == q.attributes
	})
}

// composeMetas adds the requests to a value, of members that it does not remove, as far as
// there is room in a frame. Of the voters that stay, one remains a voter.
func (m *Machine) composeMetas(v *value, voters set, bytes int) {
	for _, q := range m.metas {
		i, _ := m.view.index(q.rank)
		if v.removed.has(i) || q.observer && !spare(voters, i) {
			continue
		}
		changed := m.view.Members.At(i).with(q.attributes)
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
	if m.with(is.attributes()) != *is {
		return fmt.Errorf("%w: view %d changes more of rank %d than its attributes", ErrView, v.number, m.Rank)
	}
	return nil
}
