package relay

import (
	"maps"
	"slices"
)

// A lead ships the messages of its zone along one link for each other zone. The link has a
// cursor: what was sent of each origin, beginning with the position that the gateway has
// named. When the gateway changes, the link begins again. A gateway that does not acknowledge is
// passed over for the next delegate of its zone.

// link is a lead's way to another zone.
type link struct {
	zone    string
	gateway Peer
	try     int // which delegate is the first: the one after the last that was passed over
	vain    int // how many were passed over since the last acknowledgment
	synced  bool
	again   bool // positions of orphans are to be exchanged, while messages go on
	asked   Time // when the gateway was asked for its positions; 0: not yet
	sent    map[Origin]uint64
	acked   map[Origin]uint64
	flying  int  // bytes that were sent and not acknowledged
	moved   Time // when there was an acknowledgment, or nothing to acknowledge
}

func (l *link) deadline(c *Config) Time {
	switch {
	case !l.synced || l.again:
		return l.asked + c.stall(l.vain)
	case l.flying > 0:
		return l.moved + c.stall(l.vain)
	}
	return never
}

// stall is how long to wait for acknowledgments, by how often that was in vain: a
// retransmission timeout with exponential backoff (Jacobson 1988). Without it, zones that
// are slow because their hosts are busy would be asked, and shipped to, more and more.
func (c *Config) stall(vain int) Time { return c.Stall << min(vain, 3) }

// ship sends what other zones lack, if this member leads.
func (m *Machine) ship(now Time) {
	if !m.Lead() {
		return
	}
	var list []*stream
	for _, s := range m.sorted {
		if m.ships(s.origin) && s.next > 0 {
			list = append(list, s)
		}
	}
	for _, zone := range m.zones {
		l := m.link(now, zone)
		if (!l.synced || l.again) && (l.asked == 0 || now >= l.asked+m.config.stall(l.vain)) {
			l.asked = now
			covers := m.shipped()
			m.send(l.gateway, &frame{kind: kindSync, zone: m.self.Zone, zones: m.bases(), covers: covers, born: m.born, positions: m.positions(covers)})
		}
		if l.synced {
			m.pump(now, l, list)
		}
	}
}

// ships reports whether this zone ships the messages of an origin to others: it is of this
// zone, or its zone is not in the backbone, or has died and begun again since then.
func (m *Machine) ships(o Origin) bool {
	return o.Zone == m.self.Zone || !m.present(o.Zone) || o.Incarnation < m.births[o.Zone]
}

// setZones takes in which other zones are in the backbone. The messages of a zone that is
// gone are shipped by the others, which exchange their positions first.
func (m *Machine) setZones() {
	m.zones = nil
	births := make(map[string]uint64)
	for _, p := range m.peers {
		if p.Zone != m.self.Zone && !slices.Contains(m.zones, p.Zone) {
			m.zones = append(m.zones, p.Zone)
		}
		births[p.Zone] = max(births[p.Zone], p.Born)
	}
	before := len(m.links)
	maps.DeleteFunc(m.links, func(zone string, _ *link) bool {
		return !slices.Contains(m.zones, zone) || births[zone] != m.births[zone]
	})
	m.births = births
	for _, l := range m.links {
		if len(m.links) < before {
			l.again, l.asked = true, 0
		}
	}
}

// link returns the link to a zone, begun again if it has another gateway now.
func (m *Machine) link(now Time, zone string) *link {
	l := m.links[zone]
	if l == nil {
		l = &link{zone: zone, acked: make(map[Origin]uint64)}
		m.links[zone] = l
	}
	patience := m.config.stall(l.vain)
	stalled := l.synced && l.flying > 0 && now >= l.moved+patience || !l.synced && l.asked > 0 && now >= l.asked+patience
	if stalled {
		l.try = 1 + slices.Index(m.delegates(zone), l.gateway)
		l.vain++
		delete(m.trips, l.gateway) // it may be near, but is of no use
	}
	if gateway := m.gateway(l); stalled || gateway != l.gateway || l.sent == nil {
		*l = link{zone: zone, gateway: gateway, try: l.try, vain: l.vain, sent: make(map[Origin]uint64), acked: l.acked, moved: now}
	}
	return l
}

// Dropped says that a frame to a peer was not sent. If the peer is a gateway, it may lack a
// message that is not the last, so the link begins again: with the next gateway, unless this
// one answers before. Acknowledgments would not show it, since those of other origins go on.
func (m *Machine) Dropped(now Time, rank int) {
	for _, l := range m.links {
		if l.gateway.Rank == rank && l.synced {
			l.synced, l.again, l.asked = false, false, now
		}
	}
}

// gateway chooses the delegate of a zone that messages are shipped to: the first, unless it
// was passed over, or another one is nearer.
func (m *Machine) gateway(l *link) Peer {
	of := m.delegates(l.zone)
	first := of[l.try%len(of)]
	if l.vain > 0 {
		return first
	}
	return m.nearest(of, first, l.gateway)
}

// shipped returns the zones of which this one ships messages.
func (m *Machine) shipped() []string {
	zones := make(map[string]bool)
	for z := range m.based {
		zones[z] = z == m.self.Zone || !m.present(z)
	}
	for _, s := range m.sorted {
		zone := s.origin.Zone
		zones[zone] = zones[zone] || m.based[zone] && m.ships(s.origin)
	}
	return slices.DeleteFunc(m.bases(), func(z string) bool { return !zones[z] })
}

// handleReply takes in the positions of a gateway. A zone that is new begins at the present.
// A reply from before another zone was gone says nothing about that one, so the gateway is
// asked again.
func (m *Machine) handleReply(now Time, rank int, f *frame) {
	if len(f.covers) == 0 {
		m.measured(now, rank, f.zone)
		return
	}
	l := m.links[f.zone]
	if l == nil || l.gateway.Rank != rank || l.synced && !l.again {
		return
	}
	theirs := make(map[Origin]uint64, len(f.positions))
	for _, p := range f.positions {
		theirs[p.Origin] = p.Seq
	}
	base := &frame{kind: kindBase, zone: m.self.Zone}
	for _, s := range m.sorted {
		o := s.origin
		switch has, ok := theirs[o]; {
		case s.next == 0 || o.Zone == m.self.Zone && l.synced || !slices.Contains(f.covers, o.Zone):
			continue
		case o.Zone == l.zone:
			l.sent[o] = s.position() // it has begun again without them
		case ok:
			l.sent[o] = min(has, s.position())
			if o.Zone != m.self.Zone {
				l.acked[o] = max(l.acked[o], l.sent[o]) // no watermark depends on it
			}
		case slices.Contains(f.zones, o.Zone):
			l.sent[o] = 0
		case o.Zone == m.self.Zone:
			base.positions = append(base.positions, position{Origin: o, Seq: s.position()})
			l.sent[o], l.acked[o] = s.position(), s.position()
		}
	}
	if !slices.Contains(f.zones, m.self.Zone) && !l.synced {
		m.send(l.gateway, base)
	}
	uncovered := func(z string) bool { return !slices.Contains(f.covers, z) }
	l.synced, l.again, l.moved = true, slices.ContainsFunc(m.shipped(), uncovered), now
	m.progressed = now
	m.weigh(l)
}

// pump sends what the window of a link has room for.
func (m *Machine) pump(now Time, l *link, list []*stream) {
	if l.flying == 0 {
		l.moved = now
	}
	for _, s := range list {
		if l.sent[s.origin] >= s.position() || s.origin.Zone != m.self.Zone && !m.orphan(l, s) {
			continue
		}
		sent := l.sent[s.origin]
		for sent < s.position() && (l.flying == 0 || l.flying < m.config.Window) {
			sent = m.shipNext(l, s, sent)
		}
		l.sent[s.origin] = sent
	}
}

// orphan finds out which messages of an origin whose zone is gone this zone ships along a
// link: those that no zone before this one has, in the order of names. So each is shipped
// once. It reports false as long as a position is not known.
func (m *Machine) orphan(l *link, s *stream) bool {
	sent, known := l.sent[s.origin]
	if !known {
		return false
	}
	var theirs uint64
	for _, zone := range m.zones {
		if zone > m.self.Zone {
			break
		}
		other := m.links[zone]
		switch {
		case zone == l.zone:
		case other == nil || !other.synced || other.again:
			return false
		default:
			theirs = max(theirs, other.sent[s.origin])
		}
	}
	if theirs = min(theirs, s.position()); theirs > sent {
		l.sent[s.origin], l.acked[s.origin] = theirs, theirs // they wait for the acknowledgment
	}
	return true
}

// shipNext sends the first message after a position, or that it is lost. It returns the
// position after that. Of the messages of another zone, which is gone, this one may just
// have begun later than others, so it does not call them lost.
func (m *Machine) shipNext(l *link, s *stream, after uint64) uint64 {
	switch {
	case after+1 < s.first && s.origin.Zone != m.self.Zone:
		return s.first - 1
	case after+1 < s.first:
		m.send(l.gateway, &frame{kind: kindLost, origin: s.origin, seq: s.first - 1})
		l.flying++ // so that an acknowledgment is waited for
		return s.first - 1
	}
	data := s.log[after+1-s.first].data
	m.send(l.gateway, &frame{kind: kindData, origin: s.origin, seq: after + 1, data: data})
	l.flying += max(len(data), 1)
	return after + 1
}

// handleAck takes in what a zone has for good.
func (m *Machine) handleAck(now Time, rank int, f *frame) {
	l := m.links[f.zone]
	if l == nil || l.gateway.Rank != rank {
		return
	}
	for _, p := range f.positions {
		if s := m.streams[p.Origin]; (s == nil || p.Seq > s.position()) && !m.former(p.Origin) {
			l.again, l.asked = true, 0 // it has something that this zone lacks
		}
		if p.Seq > l.acked[p.Origin] {
			l.acked[p.Origin] = p.Seq
			l.moved, l.vain, m.progressed = now, 0, now
		}
	}
	m.weigh(l)
}

// former reports whether an origin was in this zone before all its members had died.
func (m *Machine) former(o Origin) bool { return o.Zone == m.self.Zone && o.Incarnation < m.born }

// weigh counts what is on its way.
func (m *Machine) weigh(l *link) {
	l.flying = 0
	for o, sent := range l.sent {
		s := m.streams[o]
		if s == nil || !m.ships(o) || o.Zone == l.zone {
			continue
		}
		if acked := max(l.acked[o], s.acked); sent > acked {
			l.flying += max(s.bytes(acked, sent), 1)
		}
	}
}

// everywhere returns up to where all zones of the backbone have an origin's messages.
func (m *Machine) everywhere(s *stream) uint64 {
	least := s.position()
	for _, zone := range m.zones {
		var acked uint64
		if l := m.links[zone]; l != nil {
			acked = l.acked[s.origin]
		}
		least = min(least, acked)
	}
	return max(least, s.acked)
}
