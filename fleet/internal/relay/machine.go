package relay

import (
	"cmp"
	"slices"

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
	// KeepBytes bounds the log, and what waits for messages before it.
	KeepBytes int
	// MaxOrigins bounds the origins that are known. Beyond it, the one that was silent for
	// longest is forgotten.
	MaxOrigins int
	// Window is how much may be on its way to a zone.
	Window int
	// AckDelay is how long a gateway waits before it acknowledges, unless much is shipped, and
	// WatermarkDelay the time between two watermarks of the lead.
	AckDelay, WatermarkDelay Time
	// Stall is how long acknowledgments may fail to come before another delegate ships, or
	// is shipped to. Each time that this was in vain, it is twice as long, up to eight times.
	Stall Time
	// GapDelay is how long a member waits for a message that is missing before it asks.
	GapDelay Time
	// ForwardDelay is the time between two messages that a member forwards to the lead. If
	// zero, it forwards none.
	ForwardDelay Time
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
// SetBackbone, FromZone, FromPeer, Stable, Dropped and Tick. After each, the driver performs the
// Actions in order. It calls Tick at the Deadline.
type Machine struct {
	config     Config
	self       Origin
	born       uint64  // when this zone was begun, by the clock of the member that did
	ready      bool    // it has the positions of the zone
	early      []frame // what came before, as much as the log may have
	earlyBytes int

	streams   map[Origin]*stream
	sorted    []*stream          // the same, in the order of their origins
	known     map[string]*stream // the same, by the bytes of their origins in frames
	based     map[string]bool
	gaps      map[Origin]*stream // in which something is missing
	forgot    bool               // there were too many origins
	heldBytes int
	kept      []*stream // whose messages the log has, in the order of their arrival
	keptBytes int

	siblings []Sibling // the delegates of this zone, by age
	rank     int       // of this process in its zone
	order    []int     // ranks in the zone of delegates that are in the backbone, by age
	index    int       // of this process in them, or -1
	active   bool      // this process ships

	peers         []Peer            // nil: not in the backbone
	zones         []string          // of the peers, but this one, in order
	births        map[string]uint64 // when they have begun
	links         map[string]*link
	trips         map[Peer]trip           // to delegates of other zones
	probes        map[string]*probe       // by zone
	ackDue        map[int]map[Origin]bool // by the peer that has shipped
	ackSince      Time                    // the first of them is due
	ackBytes      int                     // that have arrived since then
	shippers      map[int]bool            // peers that have shipped
	acking        []ack                   // sent when what was broadcast is stable
	polling       bool
	progressed    Time // when an acknowledgment has come, or nothing was to come
	vain          int  // how often this delegate has shipped although one before it gets on
	lastWatermark Time
	leader        int  // rank of the delegate that has broadcast the last watermark
	lastForward   Time // of a message to the leader
	unmarked      bool // something may have changed since the last watermark
	asked         int  // which delegate was asked last

	summaries    map[string]Summary
	ownSummary   Summary
	summaryDue   bool
	lastSummary  Time
	summariesNew bool

	actions   []Action
	performed []Action // those that Actions has returned
	sent      Counts
}

// Counts are the frames that were sent to other zones.
type Counts struct {
	Data, Acks, Syncs, Summaries uint64
}

// ack is what a gateway acknowledges.
type ack struct {
	peer  int
	frame *frame
}

// Action is what a driver does for a machine.
type Action interface{ action() }

type (
	// Deliver gives a message to the program.
	Deliver struct{ Message Message }
	// Cast broadcasts a frame in the zone.
	Cast struct{ Frame []byte }
	// Forward sends a frame to a member of the zone, beside the broadcast that follows. It
	// may be dropped.
	Forward struct {
		Rank  int
		Frame []byte
	}
	// Send sends a frame to a delegate in the backbone.
	Send struct {
		Peer  Peer
		Frame []byte
	}
	// Poll waits until what was cast before is stable in the zone, and calls Stable then.
	Poll struct{}
	// Fetch asks a member of the zone. Its reply, that of Serve, goes to Fetched.
	Fetch struct {
		Rank  int
		Frame []byte
	}
)

func (Deliver) action() {}
func (Cast) action()    {}
func (Forward) action() {}
func (Send) action()    {}
func (Poll) action()    {}
func (Fetch) action()   {}

// New makes the machine of a member.
func New(c Config) *Machine {
	return &Machine{
		config: c, self: c.Self, streams: make(map[Origin]*stream), known: make(map[string]*stream), based: make(map[string]bool), gaps: make(map[Origin]*stream),
		links: make(map[string]*link), trips: make(map[Peer]trip), probes: make(map[string]*probe), ackDue: make(map[int]map[Origin]bool), shippers: make(map[int]bool),
		summaries: make(map[string]Summary), index: -1,
	}
}

// Actions returns what is to be done since the last call. It is valid until the next one.
func (m *Machine) Actions() []Action {
	clear(m.performed)
	m.performed, m.actions = m.actions, m.performed[:0]
	return m.performed
}

// Counts returns how many frames were sent to other zones.
func (m *Machine) Counts() Counts { return m.sent }

// Ready reports whether this member has the positions of its zone, by Begin or Join.
func (m *Machine) Ready() bool { return m.ready }

// Born tells when this zone was begun, by the clock of its first member. All members
// before are dead.
func (m *Machine) Born() uint64 { return m.born }

// Lead reports whether this member ships the messages of its zone.
func (m *Machine) Lead() bool { return m.active }

// Begin makes this member the first of its zone.
func (m *Machine) Begin(now Time) {
	m.based[m.self.Zone] = true
	m.setBorn(m.config.Born)
	m.begin(now)
}

// setBorn notes when this zone was begun, and gives this process its incarnation.
func (m *Machine) setBorn(at uint64) {
	m.born, m.self.Incarnation = at, at+m.config.Self.Incarnation
}

func (m *Machine) begin(now Time) {
	m.ready = true
	early := m.early
	m.early = nil
	for i := range early {
		m.handleZone(now, -1, &early[i])
	}
	m.step(now)
}

// Window reports whether a message may be broadcast now: what other zones do not have
// yet of this process's messages is bounded.
func (m *Machine) Window(share int) bool {
	s := m.streams[m.self]
	return m.ready && (s == nil || s.bytes(s.acked, s.position()) < share)
}

// Broadcast broadcasts a message of this process.
func (m *Machine) Broadcast(now Time, data []byte) {
	s := m.stream(now, m.self)
	f := &frame{kind: kindData, origin: m.self, seq: s.next, data: data}
	m.forward(now, f)
	m.cast(f)
	m.arrive(now, s, s.next, data, false)
	m.step(now)
}

// SetZone takes in a view of the zone: its delegates by age, and the rank of this process.
func (m *Machine) SetZone(now Time, delegates []Sibling, rank int) {
	m.siblings, m.rank = delegates, rank
	if !slices.ContainsFunc(delegates, func(s Sibling) bool { return s.Rank == m.leader }) && len(delegates) > 0 {
		m.leader = delegates[0].Rank // until there is a watermark
	}
	m.setOrder(now)
	m.step(now)
}

// SetBackbone takes in a view of the backbone, or nil if this process is not in it.
func (m *Machine) SetBackbone(now Time, peers []Peer) {
	before := m.peers
	m.peers = slices.SortedFunc(slices.Values(peers), func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Age, b.Age), cmp.Compare(a.Rank, b.Rank))
	})
	if m.peers == nil {
		clear(m.links)
		clear(m.ackDue)
	}
	m.setZones()
	m.setOrder(now)
	m.forgetTrips()
	for _, p := range before {
		if !slices.Contains(m.peers, p) {
			m.inherit(now, p)
		}
	}
	m.step(now)
}

// present reports whether a zone is in the backbone.
func (m *Machine) present(zone string) bool {
	_, other := slices.BinarySearch(m.zones, zone)
	return other || m.peers != nil && zone == m.self.Zone
}

// FromZone takes in a frame that a member of the zone has broadcast, or forwarded.
func (m *Machine) FromZone(now Time, rank int, b []byte) error {
	var f frame
	if err := f.decode(b, m.known); err != nil {
		return err
	}
	if !m.ready {
		if m.earlyBytes += len(b); m.earlyBytes <= m.config.KeepBytes {
			f.stream = nil               // it may be forgotten until then
			m.early = append(m.early, f) // what does not fit is found missing later
		}
		return nil
	}
	m.handleZone(now, rank, &f)
	if f.kind == kindData && !m.ships(f.origin) {
		m.settle(now)
	} else {
		m.step(now)
	}
	return nil
}

func (m *Machine) handleZone(now Time, rank int, f *frame) {
	switch f.kind {
	case kindData:
		m.arrive(now, m.streamOf(now, f), f.seq, f.data, false)
	case kindLost:
		m.skip(now, m.stream(now, f.origin), f.seq)
	case kindBase:
		m.takeBase(now, f)
	case kindWatermark:
		m.handleWatermark(now, rank, f)
	case kindSummary:
		m.takeSummaries(now, f.summaries)
	}
}

// FromPeer takes in a frame that a delegate has sent over the backbone.
func (m *Machine) FromPeer(now Time, rank int, b []byte) error {
	var f frame
	if err := f.decode(b, m.known); err != nil || !m.ready {
		return err // a lead asks again
	}
	switch f.kind {
	case kindData:
		m.noteShipped(now, m.shipper(rank, f.origin), f.origin, len(f.data))
		m.arrive(now, m.streamOf(now, &f), f.seq, f.data, true)
		if !m.ships(f.origin) {
			m.settle(now)
			return nil
		}
	case kindLost:
		m.noteShipped(now, m.shipper(rank, f.origin), f.origin, 0)
		if s := m.stream(now, f.origin); s.next > 0 && s.next <= f.seq {
			m.cast(&f)
			m.skip(now, s, f.seq)
		}
	case kindBase:
		if !m.based[f.zone] {
			m.cast(&f)
			m.takeBase(now, &f)
		}
	case kindSync:
		m.handleSync(now, rank, &f)
	case kindReply:
		m.handleReply(now, rank, &f)
	case kindAck:
		m.handleAck(now, rank, &f)
	case kindSummary:
		if m.takeSummaries(now, f.summaries) {
			m.summariesNew = true
		}
	}
	m.step(now)
	return nil
}

// takeBase takes in where the messages of a zone begin for this one.
func (m *Machine) takeBase(now Time, f *frame) {
	if m.based[f.zone] {
		return
	}
	m.based[f.zone] = true
	for _, p := range f.positions {
		if p.Origin.Zone == f.zone {
			if s := m.stream(now, p.Origin); s.next <= 1 && len(s.log) == 0 {
				s.next, s.first = p.Seq+1, p.Seq+1
			}
		}
	}
	for _, s := range m.sorted {
		if s.origin.Zone == f.zone {
			s.next = max(s.next, 1)
			for seq := range s.held {
				if seq < s.next {
					m.heldBytes -= len(s.held[seq].data)
					delete(s.held, seq)
				}
			}
			m.drain(now, s)
		}
	}
}

// Tick does what is due.
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

// settle does what follows from an input that gives this zone nothing to ship, as most do:
// messages of other zones.
func (m *Machine) settle(now Time) {
	m.unmarked = true
	m.acknowledge(now)
	m.sendWatermark(now)
	m.summarize(now)
	m.fetch(now)
}

// Deadline returns when Tick is due, or -1 if it is not.
func (m *Machine) Deadline() Time {
	d := deadline(-1)
	if !m.ready {
		return Time(d)
	}
	m.watchDeadline(&d)
	for _, l := range m.links {
		d.at(l.deadline(&m.config))
	}
	if len(m.ackDue) > 0 && !m.polling {
		d.at(m.ackSince + m.config.AckDelay)
	}
	if m.Lead() {
		if m.unmarked {
			d.at(m.lastWatermark + m.config.WatermarkDelay)
		}
		d.at(m.summaryDeadline())
		for _, p := range m.probes {
			d.at(p.sent + probeDelay)
		}
	}
	for _, s := range m.gaps {
		d.at(s.gap + m.config.GapDelay)
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

func (m *Machine) cast(f *frame) { m.actions = append(m.actions, Cast{f.append(nil)}) }

func (m *Machine) send(p Peer, f *frame) {
	switch f.kind {
	case kindData, kindLost:
		m.sent.Data++
	case kindAck:
		m.sent.Acks++
	case kindSummary:
		m.sent.Summaries++
	default:
		m.sent.Syncs++
	}
	m.actions = append(m.actions, Send{p, f.append(nil)})
}

// peer returns the delegate of a rank.
func (m *Machine) peer(rank int) (Peer, bool) {
	i := slices.IndexFunc(m.peers, func(p Peer) bool { return p.Rank == rank })
	if i < 0 {
		return Peer{}, false
	}
	return m.peers[i], true
}

// positions returns those of the origins of some zones.
func (m *Machine) positions(zones []string) (list []position) {
	for _, s := range m.sorted {
		if s.next > 0 && slices.Contains(zones, s.origin.Zone) {
			list = append(list, position{Origin: s.origin, Seq: s.position(), Acked: s.acked})
		}
	}
	return list
}

// bases returns the zones of which this one has a base.
func (m *Machine) bases() []string {
	var zones []string
	for z := range m.based {
		zones = append(zones, z)
	}
	slices.Sort(zones)
	return zones
}

func compareOrigins(a, b Origin) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Incarnation, b.Incarnation))
}

func compareStream(s *stream, o Origin) int { return compareOrigins(s.origin, o) }

// Connected reports whether a zone is in the backbone, as far as this member knows.
func (m *Machine) Connected(zone string) bool { return m.present(zone) }
