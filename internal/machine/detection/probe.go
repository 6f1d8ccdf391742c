package detection

import (
	"fmt"
	"slices"
	"sort"

	"github.com/pleach-go/pleach/protocol"
)

// Probe is a connection to open, to find out whether a process listens at an address.
type Probe struct {
	Rank    protocol.Rank
	Address string
	of      *probing
}

// Result is what a probe has shown.
type Result int

// The results of probes.
const (
	Inconclusive Result = iota // a local failure, which says nothing about the peer
	Reachable                  // the host accepted the connection
	Refused                    // the host refused it: no process is there
	Silent                     // no answer
)

// probing is a series of probes of one peer, which a lost connection has begun.
type probing struct {
	loss    error         // of the connection
	startBy protocol.Time // until then only a refusal proves anything; 0: everything does
	due     protocol.Time // of the next probe; Never: one is in flight
	sent    protocol.Time // of the probe in flight
	try     int           // number of the probe in its round
	before  Result        // of the probe before in the round
	again   bool          // a Down has come that this round is too late for
}

// appointment is when a probe is due. It is void if the time is no longer that of the peer's
// probing.
type appointment struct {
	at      protocol.Time
	rank    protocol.Rank
	probing *probing
}

// delay returns the time before each probe of a round. A reachable peer is probed again,
// because a killed process often still listens for an instant after its connections break.
func delay(try int) protocol.Time {
	const millisecond = 1e6
	return [lastTry + 1]protocol.Time{0, 5 * millisecond, 50 * millisecond, 500 * millisecond}[try]
}

// lastTry is the last probe of a round. It is repeated until it decides.
const lastTry = 3

// Down records that the connection to a peer broke, or could not be made. The peer is probed
// unless it is gone for good or its address is unknown.
func (m *Machine) Down(now protocol.Time, rank protocol.Rank, loss error) {
	s := m.state(rank)
	if s == nil || s.peer.Address == "" || s.why != nil && s.why != m.config.Silent {
		return
	}
	if p := s.probing; p != nil {
		p.again = true
		if p.due == p.startBy {
			m.schedule(now, rank, p) // it may have ended since it listened
		}
		return
	}
	s.probing = &probing{loss: loss}
	at := now + s.peer.Pause
	switch startBy := s.since + m.config.StartTimeout; {
	case s.met || s.peer.Incarnation != 0 || startBy <= at:
	case m.config.Listening:
		s.probing.startBy = startBy
	default:
		at = startBy
	}
	m.schedule(at, rank, s.probing)
}

// schedule sets the time of the next probe.
func (m *Machine) schedule(at protocol.Time, rank protocol.Rank, p *probing) {
	p.due = at
	i := sort.Search(len(m.due), func(i int) bool { return m.due[i].at > at })
	m.due = slices.Insert(m.due, i, appointment{at, rank, p})
}

// Next returns a probe to make now, or false if there is none.
func (m *Machine) Next(now protocol.Time) (Probe, bool) {
	for m.Deadline() <= now {
		a := m.due[0]
		m.due = m.due[1:]
		s, p := m.states[a.rank], a.probing
		if s == nil || s.probing != p || p.due != a.at {
			continue
		}
		p.due, p.sent = protocol.Never, now
		p.again = p.again && p.try > 0
		m.inFlight++
		return Probe{a.rank, s.peer.Address, p}, true
	}
	return Probe{}, false
}

// Deadline returns when Next must be called next, or Never.
func (m *Machine) Deadline() protocol.Time {
	if len(m.due) == 0 || m.inFlight == m.config.MaxDials {
		return protocol.Never
	}
	return m.due[0].at
}

// Probed records the result of a probe, and the error of the dial.
func (m *Machine) Probed(now protocol.Time, probe Probe, result Result, err error) {
	m.inFlight--
	s, p := m.states[probe.Rank], probe.of
	if s == nil || s.probing != p {
		return // a connection or a view has proved more
	}
	if result == Silent && now-p.sent > m.config.DialTimeout+m.config.DialTimeout/4 {
		result = Inconclusive // this process was stopped or starved, and must not blame others
	}
	if result == Reachable && s.why == m.config.Silent {
		m.trust(s) // an answer does not bring back a process that is gone
	}
	switch {
	case result == Refused:
		s.probing = nil
		m.suspect(s, m.config.Gone, cause(p.loss, err))
	case now < p.startBy && p.again:
		m.schedule(now, probe.Rank, p)
	case now < p.startBy:
		m.schedule(p.startBy, probe.Rank, p)
	case result == Silent && p.before == Silent:
		m.suspect(s, m.config.Silent, cause(p.loss, err))
		m.endRound(now, s)
	case result == Reachable && p.try == lastTry:
		m.endRound(now, s)
	default:
		p.before, p.try = result, min(p.try+1, lastTry)
		m.schedule(now+delay(p.try), probe.Rank, p)
	}
}

// endRound begins another round if a Down has come meanwhile.
func (m *Machine) endRound(now protocol.Time, s *state) {
	p := s.probing
	s.probing = nil
	if p.again {
		s.probing = &probing{loss: p.loss}
		m.schedule(now, s.peer.Rank, s.probing)
	}
}

// cause joins the error of a probe with that of the lost connection.
func cause(loss, err error) error {
	if loss == nil {
		return err
	}
	return fmt.Errorf("%w (after %w)", err, loss)
}
