package membership

import "github.com/pleach-go/pleach/protocol"

// reporter sends the requests of this member to the coordinator, and retransmits
// them with exponential backoff until a view fulfills them: its suspicions, its own
// leave and meta, a higher version, and its candidates. So no lost frame makes a request
// wait forever.
type reporter struct {
	due       protocol.Time // Never: nothing to report
	retry     protocol.Time // of the next retransmission
	since     protocol.Time // when there was something to report
	news      int           // how often other members have reported something new since
	tries     int
	to        protocol.Rank // the receiver of the last report, through relays or not
	direct    bool          // it has got reports without relays
	heard     protocol.Time // when its last frame arrived, or the first report to it was due
	asked     protocol.Time // when a report was sent first; 0: a frame of its receiver has arrived since
	fresh     bool          // there is something new to report
	withdrawn bool          // report that nothing is suspected any more
}

// changed makes the next report due at once.
func (e *reporter) changed() { e.fresh = true }

// planReport decides after any event when to report, and to which member: the
// coordinator, or the next rank if the coordinator does not answer.
func (m *Machine) planReport(now protocol.Time, excluded set, coordinator protocol.Rank) {
	e := &m.reporter
	if coordinator == m.config.Self.Rank || !m.hasReport() {
		e.due, e.to, e.direct, e.asked, e.fresh, e.withdrawn = protocol.Never, coordinator, false, 0, false, false
		return
	}
	to := m.nextHeard(excluded, coordinator)
	if e.to != to || e.due == protocol.Never {
		e.heard = now
	}
	if e.due == protocol.Never {
		e.since, e.news = now, 0
	}
	if e.fresh || e.to != to || e.due == protocol.Never {
		*e = reporter{
			due: now, since: e.since, news: e.news, to: to, direct: e.direct, heard: e.heard, asked: e.asked,
			withdrawn: e.withdrawn,
		}
	}
}

func (m *Machine) hasReport() bool {
	return max(len(m.suspicions.own), len(m.suspicions.reported), m.live[silent].count()) > 0 || m.reporter.withdrawn ||
		m.abstains || m.leaving || m.changesMeta() || m.raises() || m.joinsReady()
}

// runReporter reports to the coordinator. Suspicions also go to the proposer of the
// last attempt: it may wait for just the suspected member.
func (m *Machine) runReporter(now protocol.Time) {
	e := &m.reporter
	if e.tries == 0 && e.asked == 0 {
		e.asked = now
	}
	e.retry = now + m.backoff(e.tries)
	e.due = e.retry
	e.tries++
	if reports := m.mergedReports(e.to); len(reports) > 0 || e.withdrawn {
		m.sendReport(reports)
	}
	m.sendAbstention(e.to)
	if m.leaving {
		m.put(e.to, frame{kind: Leave})
	}
	if m.changesMeta() {
		m.put(e.to, frame{kind: MetaChange, wanted: m.wanted})
	}
	if m.raises() {
		m.put(e.to, frame{kind: Raise, version: m.raise.wanted})
	}
	for i := range m.pending {
		if p := &m.pending[i]; p.ready {
			m.put(e.to, frame{kind: JoinRequest, candidate: p.candidate})
		}
	}
}

// backoff returns the time until the next retransmission.
func (m *Machine) backoff(tries int) protocol.Time {
	return m.config.RetryInterval * protocol.Time(min(1<<min(tries, 10), maxBackoff))
}
