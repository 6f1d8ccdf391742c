package relay

import (
	"cmp"
	"slices"
)

// core is the state that all parts of a machine share, except the journal: the identity of this
// member, its zone, the backbone, and the actions for the driver.
type core struct {
	config Config
	self   Origin
	born   uint64 // birth of this zone, by the clock of the member that began it
	ready  bool   // this member has the positions of its zone
	active bool   // this delegate ships the messages of its zone

	roster
	outbox
}

// outbox collects what the driver is to do.
type outbox struct {
	delivered []Message
	handed    []Message // the slice that Delivered has returned
	actions   []Action
	performed []Action // the slice that Actions has returned
	sent      Counts
}

// Counts are the frames that were sent to other zones.
type Counts struct {
	Data, Acks, Syncs, Summaries uint64
}

// Actions returns what is to be done since the last call. It is valid until the next one.
func (o *outbox) Actions() []Action {
	clear(o.performed)
	o.performed, o.actions = o.actions, o.performed[:0]
	return o.performed
}

// Counts returns how many frames were sent to other zones.
func (o *outbox) Counts() Counts { return o.sent }

// Delivered returns the messages for the program since the last call. It is valid until the
// next one.
func (o *outbox) Delivered() []Message {
	clear(o.handed)
	o.handed, o.delivered = o.delivered, o.handed[:0]
	return o.handed
}

func (o *outbox) deliver(m Message) { o.delivered = append(o.delivered, m) }

func (o *outbox) add(a Action) { o.actions = append(o.actions, a) }

func (o *outbox) cast(f *frame) { o.add(Cast{f.encode()}) }

// ship sends a message to a delegate of another zone.
func (o *outbox) ship(p Peer, m message) {
	o.sent.Data++
	o.add(Send{p, m.raw, false})
}

func (o *outbox) send(p Peer, f *frame) {
	switch f.kind {
	case kindLost:
		o.sent.Data++
	case kindAck:
		o.sent.Acks++
	case kindSummary:
		o.sent.Summaries++
	default:
		o.sent.Syncs++
	}
	o.add(Send{p, f.encode(), f.kind != kindLost})
}

// setBorn notes when this zone was begun, and gives this process its incarnation.
func (c *core) setBorn(at uint64) {
	c.born, c.self.Incarnation = at, at+c.config.Self.Incarnation
}

// present reports whether a zone is in the backbone.
func (c *core) present(zone string) bool {
	_, other := slices.BinarySearch(c.zones, zone)
	return other || c.peers != nil && zone == c.self.Zone
}

// former reports whether an origin was in this zone before all its members had died.
func (c *core) former(o Origin) bool { return o.Zone == c.self.Zone && o.Incarnation < c.born }

// ships reports whether this zone ships the messages of an origin to others: it is of this
// zone, or its zone is not in the backbone, or has died and begun again since then.
func (c *core) ships(o Origin) bool {
	return o.Zone == c.self.Zone || !c.present(o.Zone) || o.Incarnation < c.births[o.Zone]
}

func compareOrigins(a, b Origin) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Incarnation, b.Incarnation))
}

func compareStream(s *stream, o Origin) int { return compareOrigins(s.origin, o) }
