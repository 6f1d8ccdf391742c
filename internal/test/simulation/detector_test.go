package simulation

import (
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// detector stands for detect.All of detect.Connections and of the tracker that takes what
// the heartbeats find. Its probes are I/O, so they are modeled: a host without the
// process refuses, one that cannot be reached is silent, and the host of a paused process
// accepts.
type detector struct {
	process *process
	peers   []*watched // by rank; nil: not watched
}

// watched is what a detector knows of one member.
type watched struct {
	rank        protocol.Rank
	incarnation uint64 // 0: not known yet
	address     string
	pause       protocol.Time
	since       protocol.Time
	met         bool
	conn, heart suspicion // by broken connections, by heartbeats
	probing     bool
	again       bool
	probe       uint64
}

type suspicion int

const (
	none suspicion = iota
	silent
	gone
)

// distantPause is how long a member waits before it probes one that others are closer to.
const distantPause = 50 * millisecond

// watch watches the members of a view. A process that stays keeps its state.
func (d *detector) watch(v *membership.View) {
	old := d.peers
	d.peers = make([]*watched, v.Slots)
	p := d.process
	self := 0
	for i, m := range v.Members.All() {
		if m.Rank == p.self.Rank {
			self = i
		}
	}
	for i, m := range v.Members.All() {
		if i == self {
			continue
		}
		incarnation := m.Incarnation
		if m.Nonce == 0 {
			incarnation = 0
		}
		var w *watched
		if int(m.Rank) < len(old) {
			w = old[m.Rank]
		}
		if w == nil || incarnation != 0 && w.incarnation != incarnation {
			w = &watched{rank: m.Rank, incarnation: incarnation, since: p.sim.now}
		}
		w.address, w.pause = p.where(m), 0
		if distance := max(i-self, self-i); self > 1 && distance > 1 && distance < v.Members.Len()-1 {
			w.pause = distantPause
		}
		d.peers[m.Rank] = w
	}
}

// move takes that members of the view are elsewhere: what was found out about their former
// addresses says nothing.
func (d *detector) move(v *membership.View) {
	for _, m := range v.Members.All() {
		w, address := d.watched(m.Rank), d.process.where(m)
		if w != nil && w.address != address {
			w.address, w.probing, w.again = address, false, false
			w.probe++
			d.change(w, &w.conn, none)
		}
	}
}

func (d *detector) watched(r protocol.Rank) *watched {
	if r < 0 || int(r) >= len(d.peers) {
		return nil
	}
	return d.peers[r]
}

// suspect and trust change what one detector thinks, and report it.
func (d *detector) change(w *watched, which *suspicion, to suspicion) {
	if *which == to || *which != none && to != none {
		return
	}
	*which = to
	r := member.Report{Rank: w.rank, Incarnation: w.incarnation, Alive: to == none, Silent: to == silent}
	if r.Alive && (w.conn != none || w.heart != none) {
		return
	}
	p := d.process
	p.later(func() {
		if d.watched(w.rank) == w {
			p.step(func() { p.role.Report(p.sim.now, r) })
		}
	})
}

// up takes a connection.
func (d *detector) up(r protocol.Rank, incarnation uint64) {
	w := d.watched(r)
	if w == nil {
		return
	}
	if w.incarnation == 0 {
		w.incarnation = incarnation
	}
	switch {
	case incarnation > w.incarnation:
		d.change(w, &w.conn, gone)
	case incarnation == w.incarnation:
		w.met = true
		d.change(w, &w.conn, none)
	}
	w.probing, w.again = false, false
	w.probe++
}

// replaced takes that another process answers at the address of a member.
func (d *detector) replaced(r protocol.Rank) {
	if w := d.watched(r); w != nil {
		w.probing, w.again = false, false
		w.probe++
		d.change(w, &w.conn, gone)
	}
}

// heard takes what the heartbeats find.
func (d *detector) heard(r protocol.Rank, isSilent bool) {
	if w := d.watched(r); w != nil && isSilent {
		d.change(w, &w.heart, silent)
	} else if w != nil {
		d.change(w, &w.heart, none)
	}
}

// down takes a lost connection: it probes the member.
func (d *detector) down(r protocol.Rank) {
	w := d.watched(r)
	switch {
	case w == nil || w.conn == gone:
	case w.probing:
		w.again = true
	default:
		w.probing = true
		w.probe++
		pause := w.pause
		if !w.met && w.incarnation == 0 {
			pause = max(pause, w.since+startTimeout-d.process.sim.now)
		}
		d.round(w, w.probe, 0, pause, none)
	}
}

// startTimeout is how long a process may take to start.
const startTimeout = 2 * second

// round dials a member after a delay, as often as detect.Connections does.
func (d *detector) round(w *watched, probe uint64, try int, delay protocol.Time, before suspicion) {
	p, s := d.process, d.process.sim
	delays := [...]protocol.Time{0, 5 * millisecond, 50 * millisecond, 500 * millisecond}
	s.after(delay+delays[min(try, 3)], func() {
		to := s.hostAt(w.address)
		result, took := silent, 200*millisecond
		if p.host.reaches(to) && to.reaches(p.host) {
			result, took = none, 2*s.latency()
			if to.at(w.address) == nil {
				result = gone
			}
		}
		s.after(took, func() {
			p.do(func() { d.probed(w, probe, try, before, result) })
		})
	})
}

// probed takes the result of a dial.
func (d *detector) probed(w *watched, probe uint64, try int, before, result suspicion) {
	if w.probe != probe || d.watched(w.rank) != w {
		return
	}
	switch {
	case result == gone:
		d.change(w, &w.conn, gone)
	case result == silent && before == silent:
		d.change(w, &w.conn, silent)
	case result == none && w.conn == silent:
		d.change(w, &w.conn, none)
		fallthrough
	default:
		if try < 3 || result == silent {
			d.round(w, probe, min(try+1, 3), 0, result)
			return
		}
	}
	w.probing = w.again
	if w.again {
		w.again = false
		d.round(w, probe, 0, 0, none)
	}
}
