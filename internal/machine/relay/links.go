package relay

import (
	"maps"
	"slices"
)

// A lead ships the messages of its zone along one link for each other zone. The link has a
// cursor: what was sent of each origin, beginning with the position that the gateway has
// named. When the gateway changes, the link begins again. A gateway that does not acknowledge is
// passed over for the next delegate of its zone.
//
// Origins take turns on a link, so that none of them fills its window alone.

// shipping is the part of a lead.
type shipping struct {
	*journal
	survey        *survey
	links         map[string]*link // by zone
	away          map[string]Time  // zones that are waited for, and since when: see away.go
	covered       map[string]bool  // zones that have what is acknowledged
	marked        []string         // covered zones of the last watermark
	lastWatermark Time
	unmarked      bool // something may have changed since the last watermark
	fresh         int  // cost of messages that have reached all zones since the last watermark
}

// link is a lead's way to another zone.
type link struct {
	zone     string
	gateway  Peer
	try      int // index of the first delegate to try: the one after the last that was passed over
	backoff  int // delegates that were passed over since the last acknowledgment
	synced   bool
	again    bool              // positions of orphans are to be exchanged again; shipping continues meanwhile
	asked    Time              // when the gateway was asked for its positions; 0: not yet
	sent     map[Origin]uint64 // positions up to which messages were sent
	acked    map[Origin]uint64 // positions that are stable in the zone
	from     map[Origin]uint64 // positions that the gateway has named
	turns    []*stream         // streams that have something to send, in the order of their turns
	waiting  map[*stream]bool  // streams in turns
	inFlight int               // cost of messages that were sent and not acknowledged
	owed     bool              // the gateway has named messages that it has not acknowledged
	moved    Time              // last time of an acknowledgment, or of nothing to acknowledge
}

// quantum is what an origin may send in one turn.
const quantum = 16 << 10

func (l *link) deadline(c *Config) Time {
	due := never
	if !l.synced || l.again {
		due = l.asked + c.stall(l.backoff)
	}
	if l.waits() {
		due = min(due, l.moved+c.stall(l.backoff))
	}
	return due
}

// waits reports whether acknowledgments should come. One that is lost, because the gateway did not
// have a view with this delegate yet, would leave origins waiting for ever otherwise.
func (l *link) waits() bool { return l.synced && (l.inFlight > 0 || l.owed) }

// stall is how long to wait for acknowledgments, by how often that was in vain: a
// retransmission timeout with exponential backoff (Jacobson 1988). Without it, zones that
// are slow because their hosts are busy would be asked, and shipped to, more and more.
func (c *Config) stall(backoff int) Time { return c.Stall << min(backoff, 3) }

func (s *shipping) deadline(d *deadline) {
	for _, l := range s.links {
		d.at(l.deadline(&s.config))
	}
	if s.active && s.unmarked {
		d.at(s.lastWatermark + s.config.WatermarkDelay)
	}
	for _, since := range s.away {
		if s.active { // the next watermark gives it up
			d.at(max(since+s.config.Patience, s.lastWatermark+s.config.WatermarkDelay))
		}
	}
}

// ship sends what other zones lack, if this member leads, and asks gateways for their positions.
func (s *shipping) ship(now Time) {
	if !s.active {
		return
	}
	for _, zone := range s.zones {
		l := s.link(now, zone)
		if (!l.synced || l.again) && (l.asked == 0 || now >= l.asked+s.config.stall(l.backoff)) {
			l.asked = now
			covers := s.shipped()
			s.send(l.gateway, &frame{
				kind: kindSync, zone: s.self.Zone, zones: s.bases(), covers: covers, born: s.born,
				positions: s.positions(covers),
			})
		}
	}
	s.pumpAll(now)
}

// pumpAll sends what the windows of all links have room for. Only a lead has links.
func (s *shipping) pumpAll(now Time) {
	for _, zone := range s.zones {
		if l := s.links[zone]; l != nil && l.synced {
			s.pump(now, l)
		}
	}
}

// renewLinks takes in which other zones are in the backbone. The messages of a zone that is
// gone are shipped by the others, which exchange their positions first.
func (s *shipping) renewLinks(births map[string]uint64) {
	before := len(s.links)
	maps.DeleteFunc(s.links, func(zone string, _ *link) bool {
		return !slices.Contains(s.zones, zone) || births[zone] != s.births[zone]
	})
	for _, l := range s.links {
		if len(s.links) < before {
			l.again, l.asked = true, 0
		}
	}
}

// link returns the link to a zone, begun again if it has another gateway now.
func (s *shipping) link(now Time, zone string) *link {
	l := s.links[zone]
	if l == nil {
		l = &link{zone: zone, acked: make(map[Origin]uint64)}
		s.links[zone] = l
	}
	patience := s.config.stall(l.backoff)
	stalled := l.waits() && now >= l.moved+patience || !l.synced && l.asked > 0 && now >= l.asked+patience
	if stalled {
		l.try = 1 + slices.Index(s.delegates(zone), l.gateway)
		l.backoff++
		delete(s.survey.trips, l.gateway) // it may be near, but is of no use
	}
	if gateway := s.choose(l); stalled || gateway != l.gateway || l.sent == nil {
		*l = link{
			zone: zone, gateway: gateway, try: l.try, backoff: l.backoff, acked: l.acked, moved: now,
			sent: make(map[Origin]uint64), from: make(map[Origin]uint64), waiting: make(map[*stream]bool),
		}
	}
	return l
}

// Dropped says that a frame to a peer was not sent. If the peer is a gateway, it may lack a
// message that is not the last, so the link begins again: with the next gateway, unless this
// one answers before. Acknowledgments would not show it, since those of other origins still arrive.
func (s *shipping) Dropped(now Time, rank int) {
	for _, l := range s.links {
		if l.gateway.Rank == rank && l.synced {
			l.synced, l.again, l.asked = false, false, now
		}
	}
}

// choose returns the delegate of a zone that messages are shipped to: the first, unless it
// was passed over, or another one is nearer.
func (s *shipping) choose(l *link) Peer {
	of := s.delegates(l.zone)
	first := of[l.try%len(of)]
	if l.backoff > 0 {
		return first
	}
	return s.survey.nearest(of, first, l.gateway)
}

// handleReply takes in the positions of a gateway, and reports whether a link begins. A zone
// that is new begins at the present, unless this one has waited for it. A reply from before another
// zone was gone says nothing about that one, so the gateway is asked again.
func (s *shipping) handleReply(now Time, rank int, f *frame) bool {
	l := s.links[f.zone]
	if l == nil || l.gateway.Rank != rank || l.synced && !l.again {
		return false
	}
	if base := s.takePositions(l, f); !slices.Contains(f.zones, s.self.Zone) && !l.synced {
		s.send(l.gateway, base)
	}
	uncovered := func(z string) bool { return !slices.Contains(f.covers, z) }
	l.synced, l.again, l.moved = true, slices.ContainsFunc(s.shipped(), uncovered), now
	s.weigh(l)
	for _, of := range s.sorted {
		l.enqueue(s.journal, of)
	}
	return true
}

// takePositions sets the cursor of a link to what a gateway has. It returns the base of this
// zone, for one that does not know it.
func (s *shipping) takePositions(l *link, f *frame) *frame {
	theirs := make(map[Origin]uint64, len(f.positions))
	for _, p := range f.positions {
		theirs[p.Origin] = p.Seq
	}
	base := &frame{kind: kindBase, zone: s.self.Zone}
	for _, of := range s.sorted {
		o := of.origin
		switch has, ok := theirs[o]; {
		case of.next == 0 || o.Zone == s.self.Zone && l.synced || !slices.Contains(f.covers, o.Zone):
			continue
		case o.Zone == l.zone:
			l.sent[o] = of.position() // it has begun again without them
		case o.Zone == s.self.Zone && slices.Contains(f.zones, o.Zone):
			l.sent[o] = min(max(has, s.floor(l, of)), of.position())
		case ok:
			l.sent[o] = min(has, of.position())
			l.acked[o] = max(l.acked[o], l.sent[o]) // no watermark depends on it
		case slices.Contains(f.zones, o.Zone):
			l.sent[o] = 0
		case o.Zone == s.self.Zone:
			at := of.position()
			if s.covered[l.zone] {
				at = min(at, of.acked) // it was waited for
			}
			base.positions = append(base.positions, position{Origin: o, Seq: at})
			l.sent[o] = at // it has that when it says so: another delegate may have sent it another base
			continue
		}
		l.from[o] = l.sent[o]
	}
	return base
}

// enqueue has an origin take its turns on all links.
func (s *shipping) enqueue(of *stream) {
	if !s.active || !s.ships(of.origin) {
		return
	}
	if len(s.zones) == 0 {
		s.advance(of)
	}
	for _, l := range s.links {
		if l.synced {
			l.enqueue(s.journal, of)
		}
	}
}

func (l *link) enqueue(j *journal, of *stream) {
	if !l.waiting[of] && l.sent[of.origin] < of.position() && j.ships(of.origin) {
		l.waiting[of] = true
		l.turns = append(l.turns, of)
	}
}

// pump sends what the window of a link has room for.
func (s *shipping) pump(now Time, l *link) {
	if !l.waits() {
		l.moved = now
	}
	for blocked := 0; blocked < len(l.turns) && l.open(s.config.Window); {
		of := l.turns[0]
		l.turns = l.turns[1:]
		switch {
		case !s.ships(of.origin):
			delete(l.waiting, of) // its zone is back
		case of.origin.Zone != s.self.Zone && !s.orphan(l, of):
			l.turns = append(l.turns, of)
			blocked++
		default:
			s.shipTurn(l, of)
			blocked = 0
		}
	}
}

// open reports whether a message may be sent.
func (l *link) open(window int) bool { return l.inFlight == 0 || l.inFlight < window }

// shipTurn sends what an origin may send in a turn, and lets it wait for the next one.
func (s *shipping) shipTurn(l *link, of *stream) {
	sent := l.sent[of.origin]
	for end := l.inFlight + quantum; sent < of.position() && l.inFlight < end && l.open(s.config.Window); {
		sent = s.shipNext(l, of, sent)
	}
	l.sent[of.origin] = sent
	if sent < of.position() {
		l.turns = append(l.turns, of)
	} else {
		delete(l.waiting, of)
	}
}

// orphan finds out which messages of an origin whose zone is gone this zone ships along a
// link: those that no zone before this one has, in the order of names. So each is shipped
// once. It reports false as long as a position is not known.
func (s *shipping) orphan(l *link, of *stream) bool {
	sent, known := l.sent[of.origin]
	if !known {
		return false
	}
	var theirs uint64
	for _, zone := range s.zones {
		if zone > s.self.Zone {
			break
		}
		other := s.links[zone]
		switch {
		case zone == l.zone, zone == of.origin.Zone: // which has begun again without them
		case other == nil || !other.synced || other.again:
			return false
		default:
			theirs = max(theirs, other.sent[of.origin])
		}
	}
	theirs = min(theirs, of.position())
	if theirs > sent {
		l.sent[of.origin], l.acked[of.origin] = theirs, theirs // they wait for the acknowledgment
	}
	return true
}

// shipNext sends the first message after a position, or that it is lost. It returns the
// position after that. Of the messages of another zone, which is gone, this one may just
// have begun later than others, so the receiver does not take them for lost at once.
func (s *shipping) shipNext(l *link, of *stream, after uint64) uint64 {
	if after+1 < of.first {
		s.send(l.gateway, &frame{kind: kindLost, origin: of.origin, seq: of.first - 1})
		l.inFlight++ // so that an acknowledgment is waited for
		return of.first - 1
	}
	e := of.at(after + 1)
	s.outbox.ship(l.gateway, e.message)
	l.inFlight += e.cost()
	return after + 1
}

// handleAck takes in what a zone has for good, and reports whether that is more than before.
func (s *shipping) handleAck(now Time, rank int, f *frame) (progress bool) {
	l := s.links[f.zone]
	if l == nil || l.gateway.Rank != rank {
		return false
	}
	for _, p := range f.positions {
		of := s.streams[p.Origin]
		if (of == nil || p.Seq > of.position()) && !s.former(p.Origin) {
			l.again, l.asked = true, 0 // it has something that this zone lacks
		}
		if p.Seq > l.acked[p.Origin] {
			l.acked[p.Origin] = p.Seq
			l.moved, l.backoff, progress = now, 0, true
			if of != nil {
				s.advance(of)
			}
		}
	}
	s.weigh(l)
	return progress
}

// weigh counts what is on its way, and finds out whether acknowledgments are.
func (s *shipping) weigh(l *link) {
	l.inFlight, l.owed = 0, false
	for o, sent := range l.sent {
		of := s.streams[o]
		if of == nil || !s.ships(o) || o.Zone == l.zone {
			continue
		}
		if acked := max(l.acked[o], l.from[o]); sent > acked {
			l.inFlight += max(of.bytes(acked, sent), 1)
		}
		l.owed = l.owed || of.own && sent > max(l.acked[o], of.acked)
	}
}
