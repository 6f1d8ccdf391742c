// Package heartbeat finds neighbors that have fallen silent although their
// connections are up: a stopped process, a process that hangs, a host without power.
//
// A [Machine] is a state machine without I/O. It sends a heartbeat to each neighbor
// once per interval, over the connections that are there anyway. Any frame from a
// neighbor is a sign of life. A neighbor without one for longer than a timeout is
// silent until it is heard again.
//
// The timeout adapts in two ways. It is at least a few times the longest recent pause
// between two signs of life (as in accrual failure detectors: Hayashibara et al. 2004).
// And a member whose own timers are late doubts itself before it suspects others (local
// health awareness: Dadgar, Phillips & Currey 2018, Lifeguard): its timeouts grow, and
// after a long delay all waits begin again.
//
// A neighbor is quiet before it is silent, after two fifths of the timeout: two
// heartbeats. That suspects no member, and a member that may be cut off itself can find
// it out in time (package membership).
package heartbeat

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// FrameType is the only byte of a heartbeat. It tells a driver that carries the frames
// of several protocols which of them a frame belongs to.
const FrameType = 0x82

// Config configures a [Machine].
type Config struct {
	// Interval is the time between two heartbeats.
	Interval protocol.Time
	// Timeout is how long a neighbor may be silent, if neither it nor this member has
	// been slow. If zero, as long as it likes.
	Timeout protocol.Time
	// Report is called when a neighbor has fallen silent, and when it is heard again.
	Report func(neighbor protocol.Rank, silent bool)
}

const (
	pauses   = 4  // a neighbor may pause so many times as long as before
	decay    = 16 // the longest pause shrinks by this part per interval
	maxDoubt = 8  // as in Lifeguard
)

// Machine is the state of one member. It begins without neighbors.
type Machine struct {
	config    Config
	neighbors []neighbor
	due       protocol.Time // of the next heartbeats; Never: there are no neighbors
	next      int           // the neighbor that gets its heartbeat next
	doubt     int           // how many of this member's last intervals were late, up to maxDoubt
	quiet     bool          // a neighbor was quiet when Next was called last
	health    Health
}

// neighbor is the state of one neighbor.
type neighbor struct {
	rank        protocol.Rank
	incarnation uint64
	heard       protocol.Time // when it gave its last sign of life; Never: it need not have started yet
	pause       protocol.Time // the longest recent time between two of them
	silent      bool
	beats       int // heartbeats since TakeHealth
}

// New returns a machine.
func New(c Config) *Machine { return &Machine{config: c, due: protocol.Never} }

// Neighbor is a process to exchange heartbeats with.
type Neighbor struct {
	Rank        protocol.Rank
	Incarnation uint64
	// Started says that the process has started. Otherwise it cannot be silent before
	// its first sign of life.
	Started bool
}

// Watch sets the neighbors. One that stays keeps its state. A new one gets twice the
// timeout, because it may still have to connect.
func (m *Machine) Watch(now protocol.Time, neighbors []Neighbor) {
	old := m.neighbors
	m.neighbors, m.next = make([]neighbor, 0, len(neighbors)), 0
	for _, n := range neighbors {
		i := slices.IndexFunc(old, func(o neighbor) bool { return o.rank == n.Rank && o.incarnation == n.Incarnation })
		switch {
		case i >= 0:
			m.neighbors = append(m.neighbors, old[i])
		case n.Started:
			m.neighbors = append(m.neighbors, neighbor{rank: n.Rank, incarnation: n.Incarnation, heard: now + m.config.Timeout})
		default:
			m.neighbors = append(m.neighbors, neighbor{rank: n.Rank, incarnation: n.Incarnation, heard: protocol.Never})
		}
	}
	switch {
	case len(m.neighbors) == 0:
		m.due = protocol.Never
	case m.due == protocol.Never:
		m.due = now + m.config.Interval
	}
}

// Heard records a sign of life: a frame of a peer, or its connection.
func (m *Machine) Heard(now protocol.Time, from protocol.Rank) {
	for i := range m.neighbors {
		n := &m.neighbors[i]
		if n.rank != from {
			continue
		}
		n.pause = max(n.pause, now-n.heard)
		n.heard = now
		if n.silent {
			n.silent = false
			m.config.Report(from, false)
		}
	}
}

// Beat records a heartbeat of a peer, which is also a sign of life.
func (m *Machine) Beat(from protocol.Rank) {
	for i := range m.neighbors {
		if n := &m.neighbors[i]; n.rank == from {
			n.beats++
		}
	}
}

// Health counts how regularly this member has run, and the heartbeats of its neighbors.
type Health struct {
	Intervals int // intervals that have ended
	Late      int // those of them at whose end this member did not run
	Beats     int // heartbeats of the neighbor that has sent the most
}

// Intervals returns how many intervals have ended since TakeHealth.
func (m *Machine) Intervals() int { return m.health.Intervals }

// TakeHealth returns the health since it was called last.
func (m *Machine) TakeHealth() Health {
	h := m.health
	for i := range m.neighbors {
		n := &m.neighbors[i]
		h.Beats, n.beats = max(h.Beats, n.beats), 0
	}
	m.health = Health{}
	return h
}

// Next returns the next neighbor to send a heartbeat to, or false if there is none for
// now.
func (m *Machine) Next(now protocol.Time) (to protocol.Rank, ok bool) {
	if m.next == 0 && now >= m.due {
		m.consider(now)
	}
	m.quiet = now >= m.quietAt()
	if now < m.due {
		return protocol.NoRank, false
	}
	to = m.neighbors[m.next].rank
	m.next++
	if m.next == len(m.neighbors) {
		m.next, m.due = 0, now+m.config.Interval
	}
	return to, true
}

// Deadline returns when Next must be called again, or Never.
func (m *Machine) Deadline() protocol.Time {
	if m.quiet {
		return m.due
	}
	return min(m.due, m.quietAt())
}

// Quiet reports whether a neighbor was quiet when Next was called last.
func (m *Machine) Quiet() bool { return m.quiet }

// quietAt returns when a neighbor is quiet if it is not heard before, or Never.
func (m *Machine) quietAt() protocol.Time {
	at := protocol.Never
	for i := range m.neighbors {
		if n := &m.neighbors[i]; n.heard != protocol.Never && m.config.Timeout > 0 {
			at = min(at, n.heard+m.timeout(n)*2/5)
		}
	}
	return at
}

// timeout returns how long a neighbor may be silent.
func (m *Machine) timeout(n *neighbor) protocol.Time {
	return max(m.config.Timeout, pauses*n.pause) * protocol.Time(1+m.doubt)
}

// consider looks for neighbors that have fallen silent, once per interval.
func (m *Machine) consider(now protocol.Time) {
	late := now - m.due
	m.health.Intervals++
	if late > m.config.Interval/4 {
		m.health.Late++
		m.doubt = min(m.doubt+1, maxDoubt)
	} else {
		m.doubt = max(m.doubt-1, 0)
	}
	for i := range m.neighbors {
		n := &m.neighbors[i]
		if late > m.config.Interval && !n.silent {
			n.heard = max(n.heard, now) // this member did not run: what it has not heard proves nothing
		}
		n.pause -= n.pause / decay
		if m.config.Timeout > 0 && !n.silent && now-n.heard >= m.timeout(n) {
			n.silent = true
			m.config.Report(n.rank, true)
		}
	}
}
