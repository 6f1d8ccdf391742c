package relay

import (
	"maps"
	"slices"
)

// A gateway takes in what other zones ship, broadcasts it in its own zone, and acknowledges it
// when all members there have it. Acknowledgments are cumulative and delayed, unless much
// has arrived, as those of TCP (RFC 1122, 4.2.3.2): each costs a message over a long link,
// and one from every member of this zone.

// gateway is the part of a delegate that other zones ship to.
type gateway struct {
	*journal
	due      map[int]map[Origin]bool // origins to acknowledge, by the peer that has shipped
	dueSince Time                    // when the first of them was shipped
	dueBytes int                     // cost of what has arrived since then
	shippers map[int]bool            // peers that have shipped
	acking   []ack                   // acknowledgments to send when what was broadcast is stable
	polling  bool
}

// ack is what a gateway acknowledges.
type ack struct {
	peer  int
	frame *frame
}

func (g *gateway) deadline(d *deadline) {
	if len(g.due) > 0 && !g.polling {
		d.at(g.dueSince + g.config.AckDelay)
	}
}

// noteShipped notes that a peer waits for an acknowledgment.
func (g *gateway) noteShipped(now Time, rank int, o Origin, bytes int) {
	if len(g.due) == 0 {
		g.dueSince, g.dueBytes = now, 0
	}
	g.dueBytes += bytes
	if g.due[rank] == nil {
		g.due[rank] = make(map[Origin]bool)
	}
	g.due[rank][o] = true
	g.shippers[rank] = true
}

// shipper returns the peer that waits for an acknowledgment of a message: the one that has
// shipped it or, if that is gone, the next one of the origin's zone (see inherit).
func (g *gateway) shipper(rank int, o Origin) int {
	if _, present := g.peer(rank); !present {
		if i := g.firstOf(o.Zone); i >= 0 {
			return g.peers[i].Rank
		}
	}
	return rank
}

// firstOf returns the index of the first delegate of a zone, or -1.
func (g *gateway) firstOf(zone string) int {
	return slices.IndexFunc(g.peers, func(p Peer) bool { return p.Zone == zone })
}

// inherit acknowledges what a delegate has shipped that is gone to the next one of its
// zone. That one finds out whether its zone lacks something: the last message of a lead may
// have arrived here after its successor has asked for positions, and nowhere else.
func (g *gateway) inherit(now Time, gone Peer) {
	if !g.shippers[gone.Rank] {
		return
	}
	delete(g.shippers, gone.Rank)
	delete(g.due, gone.Rank)
	i := g.firstOf(gone.Zone)
	for _, s := range g.sorted {
		if i >= 0 && s.origin.Zone == gone.Zone && s.position() > 0 {
			g.noteShipped(now, g.peers[i].Rank, s.origin, 0)
		}
	}
}

// handleSync answers a lead with the positions of this zone, in the messages of the zones
// that the lead asks for: its own, and those that are gone, as far as the lead knows. What
// the lead does not know to be here is acknowledged later. What the lead's own zone lacks is
// shipped to it: its last lead may have died when it had shipped more than its zone has.
func (g *gateway) handleSync(now Time, rank int, f *frame) {
	to := Peer{Rank: rank, Zone: f.zone}
	theirs := make(map[Origin]position, len(f.positions))
	for _, p := range f.positions {
		theirs[p.Origin] = p
	}
	reply := &frame{
		kind: kindReply, zone: g.self.Zone, zones: g.bases(), covers: f.covers,
		positions: g.positions(f.covers),
	}
	g.send(to, reply)
	room := g.config.Window
	for _, p := range reply.positions {
		if p.Origin.Zone != f.zone || p.Origin.Incarnation < f.born {
			continue // this zone's lead ships it, or the zone has begun again since then
		}
		has := theirs[p.Origin]
		if p.Seq > has.Acked {
			g.noteShipped(now, rank, p.Origin, 0)
		}
		s := g.streams[p.Origin]
		if has.Seq+1 < s.first { // some are dropped here, too
			g.send(to, &frame{kind: kindLost, origin: s.origin, seq: s.first - 1})
		}
		for seq := max(has.Seq+1, s.first); seq < s.next && room > 0; seq++ {
			msg := s.at(seq).message
			g.outbox.ship(to, msg)
			room -= msg.cost()
		}
	}
}

// acknowledge asks whether what was broadcast is stable, to acknowledge it then.
func (g *gateway) acknowledge(now Time) {
	if len(g.due) == 0 || g.polling || now < g.dueSince+g.config.AckDelay && g.dueBytes < g.config.AckBytes {
		return
	}
	for _, rank := range slices.Sorted(maps.Keys(g.due)) {
		of := g.due[rank]
		f := &frame{kind: kindAck, zone: g.self.Zone}
		for _, o := range slices.SortedFunc(maps.Keys(of), compareOrigins) {
			if s := g.streams[o]; s != nil {
				f.positions = append(f.positions, position{Origin: o, Seq: s.position()})
			}
		}
		g.acking = append(g.acking, ack{rank, f})
	}
	clear(g.due)
	g.polling = true
	g.add(Poll{})
}

// Stable says that what was cast before the last Poll is stable in the zone, or that this
// cannot be found out now.
func (m *Machine) Stable(now Time, ok bool) {
	m.polling = false
	for _, a := range m.acking {
		p, present := m.peer(a.peer)
		switch {
		case !present:
		case ok:
			m.send(p, a.frame)
		default:
			for _, p := range a.frame.positions {
				m.noteShipped(now, a.peer, p.Origin, 0)
			}
		}
	}
	m.acking = nil
	m.step(now)
}
