package membership

import (
	"github.com/pleach-go/pleach/protocol"
)

// doubt lets a member that is cut off learn it before the others can install a view without it. A
// detector suspects the neighbors only, and after that it takes as long as AckTimeout until
// the others are silent. A majority on the other side has its next view before.
//
// So a member whose neighbor has missed heartbeats asks all others for a sign of life. Those
// that give none within DoubtTimeout are unreachable until they are heard. That says
// whether this member has a quorum, and no more: no member is suspected or left out for it.
// A member that loses its quorum, so or by suspicions, tells those that it hears, and they ask
// as well: their neighbors may all be on this side of the cut, or alive. Its questions repeat it:
// a member that was still in the view before has ignored it.
//
// Each member asks all others over connections of their own, so only small groups do.
type doubt struct {
	quiet bool          // a neighbor has missed heartbeats
	pause protocol.Time // between two questions to them
	again protocol.Time // when they are asked again
	until protocol.Time // end of the round
	told  bool          // the others have been sent that the quorum is lost
}

// asksPerRound is how often a member is asked in a round: a full queue drops frames.
const asksPerRound = 3

// SetQuiet says whether a neighbor has missed heartbeats.
func (m *Machine) SetQuiet(now protocol.Time, quiet bool) { m.now, m.doubt.quiet = now, quiet }

// doubtWindow returns how long a member may take to answer a probe. A process that
// lacks the means to reach all others at once reaches one after the other.
func (m *Machine) doubtWindow() protocol.Time {
	late := m.pace.doubt
	if m.impaired {
		late = maxDoubt
	}
	return max(m.config.DoubtTimeout, 2*m.pace.answer) * protocol.Time(1+late)
}

// ask begins a round, unless one is running.
func (m *Machine) ask(now, length protocol.Time) {
	d := &m.doubt
	if m.live[asked] != nil || !m.doubts() {
		return
	}
	m.live[asked], d.pause, d.until = set(nil).complement(m.view.Members.Len()), length/asksPerRound, now+length
	m.live[asked].remove(m.self)
	m.askOn(now)
}

// doubts reports whether the members of the view ask each other.
func (m *Machine) doubts() bool {
	return m.config.DoubtTimeout > 0 && !m.config.NoQuorum && m.view.Members.Len() <= DefaultFlatThreshold
}

// askOn asks the members that have given no sign of life yet, and again after a while.
func (m *Machine) askOn(now protocol.Time) {
	m.doubt.again = now + max(m.doubt.pause, 1)
	_, _, has := m.Quorum()
	for _, r := range m.others(m.live[asked].each()) {
		m.put(r, frame{kind: Status, asks: true, lost: !has})
	}
}

// runDoubt continues a round, or begins one if a neighbor has missed heartbeats. Once the
// quorum is lost, it tells the members that this one hears.
func (m *Machine) runDoubt(now protocol.Time) {
	if !m.doubts() {
		return
	}
	switch d := &m.doubt; {
	case m.live[asked] == nil && d.quiet:
		m.ask(now, m.doubtWindow())
	case m.live[asked] == nil:
	case now >= d.until:
		m.endRound(now)
	case now >= d.again:
		m.askOn(now)
	}
	_, _, has := m.Quorum()
	if !has && !m.doubt.told {
		for _, r := range m.others(m.survivors(m.unreachable()).each()) {
			m.put(r, frame{kind: Status, lost: true})
		}
	}
	m.doubt.told = !has
}

// endRound takes the members that have given no sign of life for unreachable. If this
// member did not run itself, that proves nothing. It asks on while a neighbor is quiet or
// the quorum is lost, and less often then: it knows already.
func (m *Machine) endRound(now protocol.Time) {
	d := &m.doubt
	if now-d.until <= m.config.RetryInterval {
		m.live[lost] = m.live[asked]
	}
	m.live[asked] = nil
	switch _, _, has := m.Quorum(); {
	case !has:
		m.ask(now, max(m.doubtWindow(), m.config.StatusInterval))
	case d.quiet:
		m.ask(now, m.doubtWindow())
	default:
		m.live[lost] = nil
	}
}

// doubtDue returns when runDoubt has something to do.
func (m *Machine) doubtDue() protocol.Time {
	if m.live[asked] == nil {
		return protocol.Never
	}
	return min(m.doubt.again, m.doubt.until)
}
