package relay

import (
	"slices"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/protocol"
)

// Time is the driver's time.
type Time = protocol.Time

// Config configures a [Machine].
type Config struct {
	// Self is this process. Its Incarnation is the number by which the zone tells the
	// starts of this ID apart. The machine adds Born, or what it was for the member that
	// began the zone, so that incarnations grow over lives of the zone, and hosts whose
	// clocks differ agree about them.
	Self Origin
	// Born is the present by the clock of this host, for a member that begins its zone.
	Born uint64
	// KeepBytes bounds the log, apart from messages of this zone that another one lacks,
	// and what waits for messages before it.
	KeepBytes int
	// MaxOrigins bounds the origins that are known. Beyond it, the one that was silent for
	// longest is forgotten.
	MaxOrigins int
	// Window is how much may be on its way to a zone.
	Window int
	// AckDelay is how long a gateway waits before it acknowledges, unless AckBytes were
	// shipped, and WatermarkDelay the time between two watermarks of the lead, unless AckBytes
	// were acknowledged.
	AckDelay, WatermarkDelay Time
	AckBytes                 int
	// Stall is how long acknowledgments may fail to come before another delegate ships, or
	// is shipped to. Each time that this was in vain, it is twice as long, up to eight times.
	Stall Time
	// Patience is how long a zone that is cut off is waited for: until then, no message that
	// it lacks is dropped from the log.
	Patience Time
	// Zones are other zones that a member which begins its zone waits for.
	Zones []string
	// GapDelay is how long a member waits for a message that is missing before it asks.
	GapDelay Time
	// ForwardDelay is the time between two messages that a member forwards to the lead. If
	// zero, it forwards none.
	ForwardDelay Time
	// Echo delivers this process's own messages, too.
	Echo bool
}

// Peer is a delegate in the backbone. Age orders the delegates of a zone: the lowest is
// the first. Born is that of its machine.
type Peer struct {
	Rank        int
	Incarnation uint64
	Zone        string
	Age         uint64
	Born        uint64
}

// Sibling is a member of the zone. Age orders them, as it orders peers.
type Sibling struct {
	Rank int
	Age  uint64
}

// Machine is the part of one member. Its inputs are Join and Begin, Broadcast, SetZone,
// SetBackbone, FromZone, Forwarded, FromPeer, Stable, Dropped and Tick. After each, the driver gives what is
// Delivered to the program, and performs the Actions in order. It calls Tick at the Deadline.
type Machine struct {
	*journal
	early      []*frame // frames from before this member was ready, up to KeepBytes
	earlyBytes int
	before     []Position
	reading    frame // the frame that is read: one at a time, and each takes memory otherwise

	shipping
	watcher
	gateway
	repair
	forwarder
	survey
	news
}

// Action is what a driver does for a machine. Frames of Cast and Send can be concatenated
// with the next ones to the same members.
type Action interface{ action() }

type (
	// Cast broadcasts a frame in the zone.
	Cast struct{ Frame []byte }
	// Forward sends a frame to a member of the zone, in addition to the broadcast that follows.
	// The frame may be dropped.
	Forward struct {
		Rank  int
		Frame []byte
	}
	// Send sends a frame to a delegate in the backbone. One that is urgent need not wait for
	// those before it that are not.
	Send struct {
		Peer   Peer
		Frame  []byte
		Urgent bool
	}
	// Poll waits until what was cast before is stable in the zone, and calls Stable then.
	Poll struct{}
	// Fetch asks a member of the zone. Its reply, that of Serve, goes to Fetched.
	Fetch struct {
		Rank  int
		Frame []byte
	}
)

func (Cast) action()    {}
func (Forward) action() {}
func (Send) action()    {}
func (Poll) action()    {}
func (Fetch) action()   {}

// New makes the machine of a member.
func New(c Config) *Machine {
	m := &Machine{journal: newJournal(c)}
	m.survey = survey{journal: m.journal, trips: make(map[Peer]trip), probes: make(map[string]*probe)}
	m.shipping = shipping{
		journal: m.journal, survey: &m.survey, links: make(map[string]*link),
		away: make(map[string]Time), covered: make(map[string]bool),
	}
	m.watcher = watcher{journal: m.journal, lead: &m.shipping}
	m.gateway = gateway{journal: m.journal, due: make(map[int]map[Origin]bool), shippers: make(map[int]bool)}
	m.repair = repair{journal: m.journal, hellos: make(map[Origin]bool)}
	m.news = news{
		journal: m.journal, lead: &m.shipping, summaries: make(map[string]Summary),
		contacts: make(map[string]Time),
	}
	m.forwarder = forwarder{journal: m.journal, forwarded: make(map[Origin]*stream)}
	return m
}

// Ready reports whether this member has the positions of its zone, by Begin or Join.
func (m *Machine) Ready() bool { return m.ready }

// Before returns the positions at which this member has become ready. It delivers what follows
// them.
func (m *Machine) Before() []Position { return m.before }

// Born tells when this zone was begun, by the clock of its first member. All members
// before are dead.
func (m *Machine) Born() uint64 { return m.born }

// Lead reports whether this member ships the messages of its zone.
func (m *Machine) Lead() bool { return m.active }

// Connected reports whether a zone is in the backbone, as far as this member knows.
func (m *Machine) Connected(zone string) bool { return m.present(zone) }

// Begin makes this member the first of its zone.
func (m *Machine) Begin(now Time) {
	m.based[m.self.Zone] = true
	m.setBorn(m.config.Born)
	m.await(m.config.Zones)
	m.begin(now)
}

func (m *Machine) begin(now Time) {
	m.ready = true
	early := m.early
	m.early = nil
	for _, f := range early {
		m.handleZone(now, -1, f)
	}
	m.step(now)
}

// Window reports whether a message may be broadcast now: what other zones do not have
// yet of this process's messages is bounded.
func (m *Machine) Window(share int) bool {
	s := m.streams[m.self]
	return m.ready && (s == nil || s.bytes(s.acked, s.position()) < share)
}

// Broadcast broadcasts a message of this process, with a header unless that is empty. It returns the
// frame that the driver broadcasts in the zone: the program waits for that, and not for frames of
// other zones which this member casts, too.
func (m *Machine) Broadcast(now Time, h header.Encoded, data []byte) []byte {
	s := m.stream(now, m.self)
	if h != "" {
		data = appendHeader(make([]byte, 0, 2+len(h)+len(data)), h, data)
	}
	raw := (&frame{kind: kindData, headed: h != "", origin: m.self, seq: s.next, data: data}).encode()
	m.forward(now, raw, len(data))
	m.arrive(now, s, s.next, message{raw, len(raw) - len(data)}, false)
	m.enqueue(s)
	m.step(now)
	return raw
}

// SetZone takes in a view of the zone: its delegates by age, and the rank of this process.
func (m *Machine) SetZone(now Time, delegates []Sibling, rank int) {
	m.siblings, m.rank = delegates, rank
	if !slices.ContainsFunc(delegates, func(s Sibling) bool { return s.Rank == m.leader }) && len(delegates) > 0 {
		m.leader = delegates[0].Rank // until there is a watermark
	}
	m.reorder(now)
	m.step(now)
}

// SetBackbone takes in a view of the backbone, or nil if this process is not in it.
func (m *Machine) SetBackbone(now Time, peers []Peer) {
	before, births := m.peers, m.births
	m.setPeers(m.self.Zone, peers)
	if m.peers == nil {
		clear(m.links)
	} else {
		m.setAway(now)
	}
	m.renewLinks(births)
	m.reorder(now)
	m.forgetTrips()
	for _, p := range before {
		if !slices.Contains(m.peers, p) {
			m.inherit(now, p)
		}
	}
	m.step(now)
}

// reorder finds out whether this delegate is the first.
func (m *Machine) reorder(now Time) {
	if m.setOrder(m.self.Zone) {
		m.restart(now)
		if !m.active {
			clear(m.links)
		}
	}
}

// FromZone takes in frames that a member of the zone has broadcast.
func (m *Machine) FromZone(now Time, rank int, b []byte) error {
	if !m.ready {
		return m.keepEarly(b)
	}
	return m.each(now, b, func(f *frame) { m.handleZone(now, rank, f) })
}

// each handles frames, and does what follows from all of them.
func (m *Machine) each(now Time, b []byte, handle func(*frame)) (err error) {
	f := &m.reading
	other := false
	for len(b) > 0 {
		b, err = f.next(b, m.known)
		if err != nil {
			break
		}
		handle(f)
		other = other || f.kind != kindData
	}
	if other {
		m.step(now)
	} else {
		m.pumpAll(now)
		m.settle(now)
	}
	return err
}

// keepEarly keeps frames until this member is ready. What does not fit is found missing later.
func (m *Machine) keepEarly(b []byte) error {
	frames, err := splitFrames(b)
	m.earlyBytes += len(b)
	if m.earlyBytes <= m.config.KeepBytes {
		m.early = append(m.early, frames...)
	}
	return err
}

func (m *Machine) handleZone(now Time, rank int, f *frame) {
	switch f.kind {
	case kindData:
		s := m.streamOf(now, f)
		m.arrive(now, s, f.seq, f.message(), false)
		m.confirm(s, f.seq)
		m.enqueue(s)
	case kindLost:
		s := m.stream(now, f.origin)
		m.skip(now, s, f.seq)
		m.enqueue(s)
	case kindBase:
		m.takeBase(now, f)
	case kindWatermark:
		m.noteCovered(f.zones, rank >= 0 && rank == m.leader)
		if m.peers != nil {
			m.setAway(now)
		}
		if rank >= 0 {
			m.leader = rank
		}
		if m.handleWatermark(now, rank, f) {
			clear(m.links) // another delegate ships
		}
	case kindSummary:
		m.takeSummaries(now, f.summaries)
	case kindHello:
		m.handleHello(f)
	}
}

// FromPeer takes in frames that a delegate has sent over the backbone.
func (m *Machine) FromPeer(now Time, rank int, b []byte) error {
	if !m.ready {
		return nil // a lead asks again
	}
	if p, ok := m.peer(rank); ok {
		m.contacts[p.Zone] = now
	}
	return m.each(now, b, func(f *frame) { m.handlePeer(now, rank, f) })
}

func (m *Machine) handlePeer(now Time, rank int, f *frame) {
	switch f.kind {
	case kindData:
		m.noteShipped(now, m.shipper(rank, f.origin), f.origin, len(f.data)+entryOverhead)
		s := m.streamOf(now, f)
		m.arrive(now, s, f.seq, f.message(), true)
		m.enqueue(s)
	case kindLost:
		m.noteShipped(now, m.shipper(rank, f.origin), f.origin, 0)
		if p, ok := m.peer(rank); ok && p.Zone != f.origin.Zone {
			m.expect(now, m.stream(now, f.origin), f.seq) // another zone may have what this one has lost
		} else {
			m.giveUp(now, m.stream(now, f.origin), f.seq, m.config.Stall/2)
		}
	case kindBase:
		if !m.based[f.zone] {
			m.cast(f)
			m.takeBase(now, f)
		}
		for _, p := range f.positions {
			m.noteShipped(now, rank, p.Origin, m.config.AckBytes) // origins may wait for it
		}
	case kindSync:
		if len(f.covers) > 0 {
			m.send(Peer{Rank: rank, Zone: f.zone}, m.emptyWatermark())
		}
		m.handleSync(now, rank, f)
	case kindWatermark:
		m.await(f.zones)
		m.setAway(now)
	case kindReply:
		if len(f.covers) == 0 {
			m.measured(now, rank, f.zone)
		} else if m.handleReply(now, rank, f) {
			m.progressed = now
		}
	case kindAck:
		if m.handleAck(now, rank, f) {
			m.progressed = now
		}
	case kindSummary:
		if m.takeSummaries(now, f.summaries) {
			m.summariesNew = true
		}
	}
}

// Tick runs the pending work of all timers.
func (m *Machine) Tick(now Time) { m.step(now) }

// step does what follows from an input.
func (m *Machine) step(now Time) {
	if m.ready {
		m.watch(now)
		m.ship(now)
		m.measure(now)
		m.settle(now)
	}
}

// settle does what follows from messages, which most inputs are.
func (m *Machine) settle(now Time) {
	m.unmarked = true
	if gotOn := m.fetch(now); len(gotOn) > 0 {
		for _, s := range gotOn {
			m.enqueue(s)
		}
		m.pumpAll(now)
	}
	m.acknowledge(now)
	m.sendWatermark(now)
	m.summarize(now)
	if len(m.forwarder.forwarded) > 0 {
		m.spread(now)
	}
}

// Deadline returns when Tick is due, or -1 if it is not.
func (m *Machine) Deadline() Time {
	d := deadline(-1)
	if !m.ready {
		return Time(d)
	}
	m.watcher.deadline(&d)
	m.shipping.deadline(&d)
	m.gateway.deadline(&d)
	m.repair.deadline(&d)
	m.forwarder.deadline(&d)
	if m.Lead() {
		d.at(m.summaryDeadline())
		m.survey.deadline(&d)
	}
	return Time(d)
}

// deadline is the earliest of several times; -1: there is none.
type deadline Time

const never = Time(1<<63 - 1)

func (d *deadline) at(t Time) {
	if *d < 0 || t < Time(*d) {
		*d = deadline(t)
	}
}
