package pleach

import (
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A member remembers the last views: when they came, which members came and went, and why.
// The reason of a removal is part of what the members have decided, so all of them tell the
// same.

// ViewChange is a view in the history of a member.
type ViewChange struct {
	Number uint64 `json:"number"`
	// Time is when this member has installed the view.
	Time time.Time `json:"time"`
	// Members counts the members of the view.
	Members int `json:"members"`
	// Changes are the members that have come, gone or changed since the view before: at
	// most 16, and Omitted counts the others. The first view of a history has none. That
	// processes which have begun the group together tell their first meta is no change.
	Changes []MemberChange `json:"changes"`
	Omitted int            `json:"omitted,omitempty"`
}

// MemberChange is a member that has come, gone or changed with a view.
type MemberChange struct {
	Rank  int    `json:"rank"`
	ID    string `json:"id"`
	Cause Cause  `json:"cause"`
	// By has the rank of the member whose detector or deny list has reported this one, that
	// coordinated the change which this one has not answered, or that the operator has asked.
	// It is empty for other causes.
	By []int `json:"by,omitempty"`
	// Detail is what a detector of the member that keeps this history has found, or where
	// a replacement is. It is often empty.
	Detail string `json:"detail,omitempty"`
}

// Cause is why a member is in a view, or is not any more. All members of a view tell the
// same.
type Cause string

// The causes of a [MemberChange].
const (
	// CauseJoined means that the member has joined.
	CauseJoined Cause = "joined"
	// CauseChanged means that the member has another meta, or has got the state of the
	// group.
	CauseChanged Cause = "changed"
	// CauseLeft means that the member has left on its own request.
	CauseLeft Cause = "left"
	// CauseSuspected means that a detector has found the member dead or silent.
	CauseSuspected Cause = "suspected"
	// CauseUnresponsive means that the member has not answered during a view change.
	CauseUnresponsive Cause = "unresponsive"
	// CauseReplaced means that a new process has joined with the member's ID.
	CauseReplaced Cause = "replaced"
	// CauseForced means that an operator has forced a view without the member.
	CauseForced Cause = "forced"
	// CauseEvicted means that an operator has evicted the member: see [Evict].
	CauseEvicted Cause = "evicted"
	// CauseRevoked means that the certificate or the ID of the member is on a deny list: see
	// Config.Security.DenyFile.
	CauseRevoked Cause = "revoked"
)

// causeOf translates a cause of the membership protocol.
func causeOf(c membership.Cause) Cause {
	switch c {
	case membership.Joined:
		return CauseJoined
	case membership.Changed:
		return CauseChanged
	case membership.Departed:
		return CauseLeft
	case membership.Suspected:
		return CauseSuspected
	case membership.Replaced:
		return CauseReplaced
	case membership.Forced:
		return CauseForced
	case membership.OperatorEvicted:
		return CauseEvicted
	case membership.Revoked:
		return CauseRevoked
	default:
		return CauseUnresponsive
	}
}

// Gone reports whether the member is not in the view any more.
func (c *MemberChange) Gone() bool { return c.Cause != CauseJoined && c.Cause != CauseChanged }

// String returns the change in words, as in "b: suspected by rank 3: its process is gone".
func (c MemberChange) String() string {
	text := fmt.Sprintf("%s: %s", c.ID, c.Cause)
	for _, by := range c.By {
		text += fmt.Sprintf(" by rank %d", by)
	}
	if c.Detail != "" {
		text += ": " + c.Detail
	}
	return text
}

// maxHistory is how many views a member remembers, and maxChanges how many changes of each.
const (
	maxHistory = 64
	maxChanges = 16
)

// faults is what this member knows of failures, and of the views that came of them; used within
// node.Do.
type faults struct {
	*core
	suspects   map[protocol.Rank]Suspect // the members that cannot be reached
	history    []ViewChange
	localError func() (time.Time, error) // the transport's last; nil: it tells none
	impaired   bool                      // see checkImpaired
	arbiter    arbitrated
}

// noteView adds a view to the history, after the members before, within node.Do. It returns
// the entry.
func (f *faults) noteView(v *membership.View, before membership.Members) *ViewChange {
	change := ViewChange{Number: v.Number, Time: time.Now(), Members: v.Members.Len(), Changes: []MemberChange{}}
	for c := range f.machine.Changes {
		if firstMeta(&c, before) {
			continue
		}
		if len(change.Changes) == maxChanges {
			change.Omitted++
			continue
		}
		change.Changes = append(change.Changes, f.memberChange(v, &c))
	}
	if len(f.history) == maxHistory {
		f.history = slices.Delete(f.history, 0, 1)
	}
	f.history = append(f.history, change)
	return &f.history[len(f.history)-1]
}

// firstMeta reports whether a member that has begun the group together with others tells its
// meta for the first time: the first view cannot have it.
func firstMeta(c *membership.Change, before membership.Members) bool {
	if c.Cause != membership.Changed || c.Member.Incarnation != member.FirstIncarnation {
		return false
	}
	old := before.Find(c.Member.Rank)
	return old != nil && old.Meta == "" && c.Member.Meta != ""
}

// memberChange describes a change, with what this member itself knows of it.
func (f *faults) memberChange(v *membership.View, c *membership.Change) MemberChange {
	m := MemberChange{Rank: int(c.Member.Rank), ID: c.Member.Identity, Cause: causeOf(c.Cause)}
	if c.By != protocol.NoRank {
		m.By = []int{int(c.By)}
	}
	s, suspected := f.suspects[c.Member.Rank]
	switch {
	case !m.Gone():
	case c.Cause == membership.Replaced:
		if next := v.Successor(c.Member); next != nil {
			m.Detail = "by a process at " + next.Address
		}
	case suspected && s.Cause != othersSuspect:
		m.Detail = s.Cause
	}
	return m
}

// joinTime is when this member has seen another one join.
type joinTime struct {
	incarnation uint64
	at          time.Time
}

// noteAdmissions records the members that a view has admitted; before are those of the
// view before.
func (c *candidates) noteAdmissions(v *membership.View, before membership.Members) {
	if c.admissions == nil {
		c.admissions = make(map[protocol.Rank]joinTime)
	}
	if v.Number == firstView { // all at once, so that a large group needs no list
		c.firstViewAt = time.Now()
		return
	}
	for rank, a := range c.admissions {
		if m, ok := v.Member(rank); !ok || m.Incarnation != a.incarnation {
			delete(c.admissions, rank)
		}
	}
	for m := range v.Members.Since(before) {
		if m.Incarnation == v.Number {
			c.admissions[m.Rank] = joinTime{m.Incarnation, time.Now()}
		}
	}
}

// firstView is the number of the view that a group begins with.
const firstView = 1

// admittedAt is when this member has seen another one join. It is zero if it has not.
func (c *candidates) admittedAt(m *membership.Member) time.Time {
	if m.Incarnation == firstView {
		return c.firstViewAt
	}
	return c.admissions[m.Rank].at
}
