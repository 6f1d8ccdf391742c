package relay

import "slices"

// The lead broadcasts watermarks in its zone: up to where it has each origin's messages, and up
// to where all zones have those of its own zone. The other delegates watch them. If the
// watermarks do not move although there is something to ship, the second delegate ships after
// a while, the third after twice that time, and so on. It stops when the watermarks of a
// delegate before it move again, and waits for longer the next time: if all zones are
// slow, more delegates that ship make them slower.

// setOrder finds out in which order the delegates of this zone ship: those that are in the
// zone's view and in that of the backbone, by age. So a delegate that has not entered the
// backbone yet, or is dead in one of the views, keeps no other from shipping.
func (m *Machine) setOrder(now Time) {
	var order []int
	index := -1
	for _, p := range m.peers {
		i := slices.IndexFunc(m.siblings, func(s Sibling) bool { return p.Zone == m.self.Zone && s.Age == p.Age })
		if i < 0 {
			continue
		}
		if m.siblings[i].Rank == m.rank {
			index = len(order)
		}
		order = append(order, m.siblings[i].Rank)
	}
	same := index == m.index && slices.Equal(order[:index+1], m.order[:index+1])
	if m.order, m.index = order, index; same {
		return
	}
	m.active = index == 0
	m.progressed, m.vain = now, 0
	for _, s := range m.streams {
		s.before = 0
	}
	if !m.active {
		clear(m.links)
	}
}

// behind reports whether a message of this zone is not known to be in all others.
func (m *Machine) behind() bool {
	for _, s := range m.sorted {
		if s.origin.Zone == m.self.Zone && s.acked < s.position() {
			return true
		}
	}
	return false
}

// watch lets this delegate ship if those before it do not get on.
func (m *Machine) watch(now Time) {
	switch {
	case m.active || m.index < 0:
	case !m.behind():
		m.progressed = now
	case now >= m.progressed+m.patience():
		m.active = true
	}
}

func (m *Machine) watchDeadline(d *deadline) {
	if !m.active && m.index >= 0 && m.behind() {
		d.at(m.progressed + m.patience())
	}
}

// patience is how long this delegate waits for those before it.
func (m *Machine) patience() Time { return m.config.stall(m.vain) * Time(m.index) }

// handleWatermark takes in a watermark of a delegate.
func (m *Machine) handleWatermark(now Time, rank int, f *frame) {
	if rank >= 0 {
		m.leader = rank
	}
	i := slices.Index(m.order, rank)
	before := i >= 0 && i < m.index
	for _, p := range f.positions {
		s := m.stream(now, p.Origin)
		if p.Acked > s.acked {
			s.acked = p.Acked
			m.progressed = now
		}
		if before && p.Acked > s.before {
			s.before = p.Acked
			m.yield(now)
		}
		if s.seen = max(s.seen, p.Seq); s.seen >= max(s.next, 1) {
			m.missing(now, s)
		}
	}
}

// yield stops shipping, since a delegate before this one gets on.
func (m *Machine) yield(now Time) {
	if m.progressed = now; m.active {
		m.active = false
		m.vain++
		clear(m.links)
	}
}

// sendWatermark broadcasts a watermark, if this delegate ships and there is something new.
func (m *Machine) sendWatermark(now Time) {
	if !m.Lead() || m.lastWatermark > 0 && now < m.lastWatermark+m.config.WatermarkDelay {
		return
	}
	m.unmarked = false
	f := &frame{kind: kindWatermark, zone: m.self.Zone}
	for _, s := range m.sorted {
		if p := m.watermarkOf(s); s.next > 0 && p != s.marked {
			s.acked = max(s.acked, p.Acked)
			s.marked = p
			f.positions = append(f.positions, p)
		}
	}
	if len(f.positions) > 0 {
		m.lastWatermark = now
		m.cast(f)
	}
}

func (m *Machine) watermarkOf(s *stream) position {
	p := position{Origin: s.origin, Seq: s.position()}
	if s.origin.Zone == m.self.Zone {
		p.Acked = m.everywhere(s)
	}
	return p
}
