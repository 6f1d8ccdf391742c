// Package detection decides when a process suspects another one to be dead, and when it
// withdraws that.
//
// A [Machine] has the opinion of one detector about the peers of a view. Some detectors
// only record what they find elsewhere ([Machine.Suspect], [Machine.Trust], [Machine.Met]).
// The detector of connections probes a peer whose connection breaks ([Machine.Down]): a
// driver makes the probes that [Machine.Next] returns, and passes the results to
// [Machine.Probed]. [Merged] combines the opinions of several detectors.
//
// A view change costs a machine work for the peers that something has happened to, and not
// for all.
package detection

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Config configures a [Machine]. Only a machine that gets [Machine.Down] needs more than the
// reasons.
type Config struct {
	// Gone, Silent and Replaced are the reasons of suspicions: a host says that no process is
	// there, no answer comes, and a later process has the rank.
	Gone, Silent, Replaced error
	// DialTimeout is how long a probe may take.
	DialTimeout protocol.Time
	// StartTimeout is how long a peer may take to start: a peer of unknown incarnation is not
	// suspected before.
	StartTimeout protocol.Time
	// Listening says that peers listen before they start. One that refuses a connection is
	// gone, even if it was never connected.
	Listening bool
	// MaxDials is how many probes are made at a time.
	MaxDials int
}

// Opinion is what a detector thinks of a process.
type Opinion struct {
	Rank        protocol.Rank
	Incarnation uint64 // 0: it was never met
	Why         error  // reason of the suspicion; nil: there is none
	Err         error  // underlying error, or nil
}

// Machine is the state of one detector.
type Machine struct {
	config   Config
	peers    Peers         // nil: none were watched yet
	since    protocol.Time // of the first Watch
	states   map[protocol.Rank]*state
	changed  []protocol.Rank // whose opinions may have to be reported, each once
	due      []appointment   // in order of time
	inFlight int             // probes
}

// state is that of a peer that something has happened to.
type state struct {
	peer     Peer // with the incarnation met first, if the view has none
	since    protocol.Time
	met      bool   // it has shown itself
	why, err error  // of the suspicion
	reported bool   // the last report was a suspicion
	as       uint64 // incarnation that it named, which may have been unknown
	queued   bool   // the rank is in changed
	probing  *probing
}

// New returns a machine that watches no peers yet.
func New(c Config) *Machine { return &Machine{config: c, states: make(map[protocol.Rank]*state)} }

// Watch sets the peers. The state of processes that stay is kept. What was found out about an
// earlier incarnation or a former address is forgotten.
func (m *Machine) Watch(now protocol.Time, peers Peers) {
	before := m.peers
	m.peers, m.changed = peers, m.changed[:0]
	for rank, s := range m.states {
		p, ok := peers.Find(rank)
		if !ok || !p.is(s.peer.Incarnation) {
			delete(m.states, rank)
			continue
		}
		p.Incarnation = s.peer.Incarnation
		if p.Address != s.peer.Address {
			s.probing, s.why = nil, nil
		}
		s.peer, s.queued = p, false
		m.enqueue(s)
	}
	slices.Sort(m.changed) // the order of a map is random
	if before == nil {
		m.since = now
		return
	}
	for p := range peers.Since(before) {
		if p.Incarnation == 0 { // it may not have started yet
			m.states[p.Rank] = &state{peer: p, since: now}
		}
	}
}

// Watched returns the peer of a rank, with its incarnation if that is known.
func (m *Machine) Watched(rank protocol.Rank) (Peer, bool) {
	if s := m.states[rank]; s != nil {
		return s.peer, true
	}
	if m.peers == nil {
		return Peer{}, false
	}
	return m.peers.Find(rank)
}

// state returns the state of a rank's peer, which it makes if there is none, or nil if the rank is
// not watched.
func (m *Machine) state(rank protocol.Rank) *state {
	s := m.states[rank]
	if p, ok := m.Watched(rank); s == nil && ok {
		s = &state{peer: p, since: m.since}
		m.states[rank] = s
	}
	return s
}

// process returns the state of a process, or nil if it is not watched: the view may have changed
// since the detector began to look at it.
func (m *Machine) process(rank protocol.Rank, incarnation uint64) *state {
	s := m.state(rank)
	if s == nil || s.peer.Incarnation != incarnation {
		return nil
	}
	return s
}

// Opinion returns what the detector thinks of a process.
func (m *Machine) Opinion(rank protocol.Rank, incarnation uint64) Opinion {
	if s := m.process(rank, incarnation); s != nil {
		return s.opinion()
	}
	return Opinion{Rank: rank, Incarnation: incarnation}
}

func (s *state) opinion() Opinion { return Opinion{s.peer.Rank, s.peer.Incarnation, s.why, s.err} }

// Suspect records that a process may have died. One that is suspected already keeps its first
// reason.
func (m *Machine) Suspect(rank protocol.Rank, incarnation uint64, why, err error) {
	if s := m.process(rank, incarnation); s != nil {
		m.suspect(s, why, err)
	}
}

// Trust withdraws a suspicion.
func (m *Machine) Trust(rank protocol.Rank, incarnation uint64) {
	if s := m.process(rank, incarnation); s != nil {
		m.trust(s)
	}
}

// Met records that a process has shown itself under a rank, such as by a connection. That
// proves more than any probe in progress. A process with a higher incarnation than the
// watched one proves that the watched one is gone: only its successor has one. Met reports
// whether the process is the watched one.
func (m *Machine) Met(rank protocol.Rank, incarnation uint64) bool {
	s := m.state(rank)
	if s == nil {
		return false
	}
	s.probing = nil
	if s.peer.Incarnation == 0 {
		s.peer.Incarnation = incarnation
	}
	switch {
	case incarnation > s.peer.Incarnation:
		m.suspect(s, m.config.Replaced, nil)
	case incarnation == s.peer.Incarnation:
		s.met = true
		m.trust(s)
		return true
	}
	return false
}

// Replaced records that another process answers at the address of a process, which is gone
// therefore.
func (m *Machine) Replaced(rank protocol.Rank, incarnation uint64) {
	if s := m.state(rank); s != nil && s.peer.is(incarnation) {
		s.probing = nil
		m.suspect(s, m.config.Replaced, nil)
	}
}

func (m *Machine) suspect(s *state, why, err error) {
	if s.why == nil {
		s.why, s.err = why, err
		m.enqueue(s)
	}
}

func (m *Machine) trust(s *state) {
	s.why, s.err = nil, nil
	m.enqueue(s)
}

// news reports whether the opinion differs from the last report.
func (s *state) news() bool {
	suspected := s.why != nil
	return suspected != s.reported || suspected && s.as != s.peer.Incarnation
}

// enqueue has Report return an opinion that differs from the last report.
func (m *Machine) enqueue(s *state) {
	if !s.queued && s.news() {
		s.queued = true
		m.changed = append(m.changed, s.peer.Rank)
	}
}

// Pending reports whether Report may have something to return.
func (m *Machine) Pending() bool { return len(m.changed) > 0 }

// Report returns the next opinion that has changed, or false if there is none. A change that
// was reverted before it was reported is not reported.
func (m *Machine) Report() (Opinion, bool) {
	for len(m.changed) > 0 {
		s := m.states[m.changed[0]]
		m.changed = m.changed[1:]
		s.queued = false
		if s.news() {
			s.reported, s.as = s.why != nil, s.peer.Incarnation
			return s.opinion(), true
		}
	}
	return Opinion{}, false
}
