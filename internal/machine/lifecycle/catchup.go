package lifecycle

import (
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A member that is behind requests decisions every catchUpInterval, at most catchUpTries times:
// another process may know more.
const (
	catchUpInterval = 2000 * millisecond
	catchUpTries    = 5
)

// source is the process of a later view from which a member requests decisions.
type source struct {
	address string // "": there is none
	view    uint64 // that has admitted the process
	tries   int    // requests left
	due     protocol.Time
}

func (s *source) end() { *s = source{due: protocol.Never} }

// Early asks a peer to catch up that does not know the view that has admitted this process.
func (m *Member) Early(now protocol.Time, peer protocol.Rank) {
	m.now = now
	v := m.config.Group.View()
	o, ok := v.Member(peer)
	if !ok || peer == m.config.Self.Rank || m.ended() {
		return
	}
	address := m.Address(&o)
	for _, a := range m.asks {
		if _, ok := a.Request.(control.CatchUp); ok && a.Address == address {
			return // it has yet to answer
		}
	}
	self := &m.config.Self
	m.ask(address, control.CatchUp{View: self.Incarnation, Address: self.Address}, askTimeout)
}

// catchUp begins to catch up with the process of a later view, unless this member has begun already.
func (m *Member) catchUp(r *control.CatchUp) []byte {
	if !m.config.Group.Stuck() {
		return control.Refuse(&control.Refusal{Status: control.Retry, Text: member.ErrNotStuck.Error()})
	}
	if m.source.address == "" {
		m.source = source{address: r.Address, view: r.View, tries: catchUpTries, due: m.now}
	}
	return control.Accept(nil)
}

// askSource sends the request for decisions that is due.
func (m *Member) askSource() {
	s := &m.source
	if s.due > m.now {
		return
	}
	if v := m.config.Group.View(); s.tries == 0 || v.Number >= s.view {
		s.end()
		return
	}
	s.tries--
	s.due = protocol.Never // until it is answered
	m.ask(s.address, control.Decisions{}, askTimeout)
}

// decided takes the decisions of the source.
func (m *Member) decided(address string, r Reply) {
	if address != m.source.address {
		return // it is no longer asked
	}
	var d membership.Decisions
	if r.Err == nil {
		d, r.Err = membership.DecodeDecisions(r.Body)
	}
	if r.Err != nil || !m.config.Group.Stuck() {
		m.source.end()
		return
	}
	m.source.due = m.now + catchUpInterval
	m.actions = append(m.actions, Learn{address, d})
}

// Learned takes the result of a [Learn]: nil, or why the decisions were not taken.
func (m *Member) Learned(now protocol.Time, from string, err error) {
	m.now = now
	if err != nil && from == m.source.address {
		m.source.end()
	}
}

// A process that was removed asks successorMembers other members, for successorTimeout, whether
// another process has its ID.
const (
	successorTimeout = 500 * millisecond
	successorMembers = 3
)

// removal is the search of a removed process for its successor.
type removal struct {
	began bool
	since uint64        // earlier views are too old
	asked int           // members that have yet to answer
	until protocol.Time // Never: the search has ended, or has not begun
}

// Evicted begins the search for a successor, which ends with [Ended]. The view has removed this
// process, and may be an old one: another process may have joined with its ID since.
func (m *Member) Evicted(now protocol.Time, view uint64) {
	m.now = now
	if m.removal.began {
		return
	}
	members := m.others()
	members = members[:min(len(members), successorMembers)]
	m.actions = nil
	m.removal = removal{began: true, since: view, asked: len(members), until: now}
	for _, address := range members {
		m.removal.until = now + successorTimeout
		m.ask(address, control.View{}, successorTimeout)
	}
}

// viewReplied takes the view of a member. The first one that is late enough decides.
func (m *Member) viewReplied(r Reply) {
	if m.removal.until == protocol.Never {
		return
	}
	var v control.ViewReply
	if r.Err == nil {
		v, r.Err = control.DecodeView(r.Body)
	}
	m.removal.asked--
	switch {
	case r.Err == nil && v.View.Number >= m.removal.since:
		m.end(v.View.Successor(&m.config.Self))
	case m.removal.asked == 0:
		m.end(nil)
	}
}

// endRemoval ends the search for a successor at its deadline.
func (m *Member) endRemoval() {
	if m.removal.until <= m.now {
		m.end(nil)
	}
}

func (m *Member) end(successor *membership.Member) {
	m.removal.until = protocol.Never
	m.actions = append(m.actions, Ended{successor})
}
