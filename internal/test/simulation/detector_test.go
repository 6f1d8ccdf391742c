package simulation

import (
	"errors"

	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// detector drives the machines of detect.Connections, of the detect.Tracker that takes what the
// heartbeats find, and of detect.All.
type detector struct {
	process                 *process
	connections, heartbeats *detection.Machine
	merged                  *detection.Merged
	armed                   protocol.Time // what the timer is set to
}

var errSilent, errGone, errReplaced = errors.New("silent"), errors.New("gone"), errors.New("replaced")

// newDetector returns the detector of the next role of a process.
func (p *process) newDetector() *detector {
	c := detection.Config{
		Gone: errGone, Silent: errSilent, Replaced: errReplaced,
		DialTimeout: 200 * millisecond, StartTimeout: 2 * second, MaxDials: 32,
	}
	return &detector{p, detection.New(c), detection.New(c), detection.NewMerged(2), protocol.Never}
}

// watch watches the members of a view, where the process knows them to be.
func (d *detector) watch(v *membership.View) {
	peers := member.NewWatched(v, d.process.self.Rank, d.process.where)
	d.merged.Watch(peers)
	d.heartbeats.Watch(d.process.sim.now, peers)
	d.step(func(m *detection.Machine) { m.Watch(d.process.sim.now, peers) })
}

// heard takes what the heartbeats find.
func (d *detector) heard(r protocol.Rank, silent bool) {
	if peer, _ := d.heartbeats.Watched(r); silent {
		d.heartbeats.Suspect(r, peer.Incarnation, errSilent, nil)
	} else {
		d.heartbeats.Trust(r, peer.Incarnation)
	}
	d.process.later(func() { d.report(1, d.heartbeats) })
}

// step passes an input on, makes the probes that are due, and reports what has changed.
func (d *detector) step(input func(*detection.Machine)) {
	p, s, m := d.process, d.process.sim, d.connections
	input(m)
	for probe, ok := m.Next(s.now); ok; probe, ok = m.Next(s.now) {
		result, took := s.probe(p.host, probe.Address)
		s.after(took, func() {
			p.do(func() { d.step(func(m *detection.Machine) { m.Probed(s.now, probe, result, nil) }) })
		})
	}
	if due := m.Deadline(); due < d.armed {
		d.armed = due
		s.events.push(due, func() {
			if d.armed == due {
				d.armed = protocol.Never
				p.do(func() { d.step(func(*detection.Machine) {}) })
			}
		})
	}
	p.later(func() { d.report(0, m) })
}

// report passes on what a detector has to report, unless the process has another role by now.
func (d *detector) report(i int, m *detection.Machine) {
	p := d.process
	for o, ok := m.Report(); ok && p.detector == d; o, ok = m.Report() {
		r := member.Report{Rank: o.Rank, Incarnation: o.Incarnation, Alive: o.Why == nil, Silent: o.Why == errSilent}
		pass := p.sim.options.Report == nil || p.sim.options.Report(&r)
		if pass && d.merged.Report(i, r.Rank, r.Incarnation, r.Alive) {
			p.step(func() { p.role.Report(p.sim.now, r) })
		}
	}
}
