package membership

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// In a large group, relays merge reports on their way to the coordinator. After many deaths
// the reports would otherwise wait for each other there, and the change for the last of
// them. The relays of a member are its ancestors in the interleaved tree of view changes
// that have the lowest ranks, so the two neighbors of a dead member have different ones. A
// relay passes on the first report at once, and then waits until no further one comes.
//
// A report names its source all the way, since the coordinator does not listen to
// members that it suspects itself. A relay may be dead or cut off, so a report is repeated
// directly, unless the coordinator shows that it knows.

// Limits of merged reports.
const (
	maxDirect    = 4096    // members of a group without relays: of 1% dead, 80 reports come
	maxReported  = 1 << 15 // suspicions in one report; the sources repeat the others directly
	maxWitnesses = 2       // sources that a report names for one suspicion
)

// Relays returns how many relays there are in a group, from the outermost level to the
// innermost. A report passes at most one of each level.
func Relays(members int) []int {
	if members <= maxDirect {
		return nil
	}
	return []int{64, 8}
}

// relayTo returns the first receiver of a report to a member: the next relay that is not
// excluded, or that member.
func (m *Machine) relayTo(to protocol.Rank) protocol.Rank {
	last, _ := m.view.index(to)
	excluded := m.excluded()
	for _, level := range m.relayLevels() {
		if r := m.self % level; r != m.self && r > last && !excluded.has(r) {
			return m.view.Members.At(r).Rank
		}
	}
	return to
}

// relayLevels returns how many relays there are, from the outermost level to the innermost.
func (m *Machine) relayLevels() []int {
	if levels := m.config.relays; levels != nil {
		return levels
	}
	return Relays(m.view.Members.Len())
}

// sendReport sends a report to the next relay, and directly if it is repeated although the
// last attempt of its receiver includes a suspect. A withdrawal takes all ways that the
// suspicion has taken.
func (m *Machine) sendReport(reports []report) {
	e := &m.reporter
	f := frame{kind: Report, reports: reports}
	relay := m.relayTo(e.to)
	direct := relay == e.to || e.tries > 1 && !m.acknowledged()
	if relay != e.to && (!direct || e.withdrawn) {
		m.put(relay, f)
	}
	if direct || e.withdrawn && e.direct {
		m.put(e.to, f)
		e.direct = true
	}
	if b := m.acceptor.promised; b != (Ballot{}) && b.Rank != e.to && b.Rank != m.config.Self.Rank {
		m.put(b.Rank, f)
	}
	e.withdrawn = false
}

// acknowledged reports whether an attempt of the receiver of reports leaves out all that
// this member suspects.
func (m *Machine) acknowledged() bool {
	p := m.acceptor.current
	return p != nil && p.ballot.Rank == m.reporter.to && !m.includesSuspect(p.members)
}

// relayNews makes a report due because another member has reported something new to this
// one, or has withdrawn something.
func (m *Machine) relayNews(now protocol.Time, withdrawn bool) {
	e := &m.reporter
	e.withdrawn = e.withdrawn || withdrawn
	if e.due <= now || e.due == protocol.Never { // it is due, or planReport makes it so
		return
	}
	e.news++
	e.tries = 0
	e.due = max(now, min(e.retry, now+min(e.quiet(now), m.config.RetryInterval)))
}

// quiet is how long to wait for further news: four times as long as for the others on
// average, since more may be on their way, but no longer than for all others together. After
// many news it is an eighth of that, so that a relay sends few reports. This needs no
// knowledge of how fast the network is.
func (e *reporter) quiet(now protocol.Time) protocol.Time {
	waited := now - e.since
	return min(waited, max(4*waited/protocol.Time(e.news), waited/8))
}

// mergedReports returns what this member accuses others of, and what others have reported
// to it.
func (m *Machine) mergedReports(to protocol.Rank) (reports []report) {
	own := m.accused(to)
	if len(own) > 0 {
		told := slices.Clone(own)
		for i := range told {
			told[i].cause = m.told(told[i].cause)
		}
		reports = append(reports, report{m.config.Self.Rank, told})
	}
	if i, _ := m.view.index(to); !m.before(i) {
		return reports
	}
	w := witnesses{left: maxReported}
	for _, x := range own {
		w.add(m, x)
	}
	for _, r := range m.suspicions.reported {
		if r.by == to || r.via == to || m.suspects(r.by) || m.suspects(r.via) {
			continue
		}
		list := slices.DeleteFunc(slices.Clone(r.suspects), func(x suspect) bool {
			return x.rank == to || x.rank == m.config.Self.Rank || !w.add(m, x)
		})
		if len(list) > 0 {
			reports = append(reports, report{r.by, list})
		}
	}
	return reports
}

// suspects reports whether the detector of this member suspects a rank.
func (m *Machine) suspects(r protocol.Rank) bool {
	_, known := slices.BinarySearchFunc(m.suspicions.own, r, compareRank)
	return known
}

// witnesses bound a merged report.
type witnesses struct {
	sources [maxWitnesses]set // the suspects that have at least 1, 2, … sources
	left    int               // how many suspicions may be added
}

// add adds a suspicion, and reports whether the merged report should have it.
func (w *witnesses) add(m *Machine, x suspect) bool {
	i, ok := m.suspectIndex(x)
	if !ok || w.left <= 0 {
		return false
	}
	for k := range w.sources {
		s := &w.sources[k]
		if *s == nil {
			*s = newSet(m.view.Members.Len())
		}
		if !s.has(i) {
			s.add(i)
			w.left--
			return true
		}
	}
	return false
}
