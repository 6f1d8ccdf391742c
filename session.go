package pleach

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/catchup"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/datadir"
	"github.com/pleach-go/pleach/internal/driver/detection"
	"github.com/pleach-go/pleach/internal/driver/node"
	"github.com/pleach-go/pleach/internal/driver/rounds"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// session is one membership of a [Group]: from its first view until it has ended. A group
// whose process joins again has another one.
type session struct {
	group  *Group
	config Config
	self   membership.Member
	log    *slog.Logger // names this member in every line
	vote   datadir.Vote // its Folder is nil if the vote is not saved
	protocols
	network
	detection *detection.Detection // nil: the group is static
	views
	ending
	catchUp *catchup.Driver
	admitting
	troubles
	sending
	*delivery
	stability
	direct  directs
	serving serving
	replica replica
	topics  map[uint64]*Subscription // the subscriptions, by their IDs; used within node.Do
}

// protocols are the machines and what drives them.
type protocols struct {
	node    *node.Node
	machine *member.Machine // used only within node.Do
	stream  *stream.Member  // the machine's streams; used only within node.Do
}

// network is what the group uses of its transport.
type network struct {
	client     *client.Client // this process, where it has no rank
	listening  string         // the address of its socket
	addresses  transport.AddressBook
	elsewhere  lifecycle.Elsewhere // the members that are not where the view has them; used within node.Do
	roster     transport.Roster
	localError func() (time.Time, error) // the transport's last; nil: it tells none
	queued     func(protocol.Rank) int   // bytes that wait in the transport for a peer; nil: it tells none
}

// views are the present view, and what tells of the next.
type views struct {
	view    *atomic.Pointer[membership.View]
	shown   atomic.Pointer[View]              // what View returned last
	own     atomic.Pointer[membership.Member] // this process in the last view that had it
	changed notify.Notifier                   // notifies when there is a new view, or more is stable or known to be lost
}

// ending is whether this process is a member, and why not.
type ending struct {
	life      context.Context // ends with this process's membership; its cause is Err
	end       context.CancelCauseFunc
	quorumErr atomic.Pointer[QuorumError]
	removal   atomic.Pointer[error] // why this process is about to be no longer a member
	closing   sync.Once
	joined    time.Time // when this membership began
}

// admitting is how candidates become members.
type admitting struct {
	admissions map[protocol.Rank]joinTime
	revoked    revoked             // the members that have shown a certificate that is denied
	reachSlots *admission.Slots    // one for each candidate that is dialed
	reaching   sync.WaitGroup      // dials candidates; see admit
	refusals   logsuppress.Foreign // of candidates
	asking     sync.WaitGroup      // whatever else the end of the membership waits for
}

// troubles are what this member knows of trouble; used within node.Do.
type troubles struct {
	suspects    map[protocol.Rank]Suspect // the members that cannot be reached
	firstViewAt time.Time                 // when this member entered the first view, if it has
	evicted     bool                      // see endEvicted
	history     []ViewChange              // see history.go
	impaired    bool                      // see checkImpaired
}

// sending is what broadcasts wait for.
type sending struct {
	limit     messageLimit
	sendLock  chan struct{} // held by the one broadcast that is writing
	metaLock  chan struct{} // held by the one SetMeta that waits
	tracing   tracing
	written   chan struct{} // what was written is on its way, or some of it
	unwritten atomic.Int64  // segments that were not, when last looked at
	restarts  atomic.Uint64 // messages cut in two by a new view, likewise
}

// stability is what is known of receipts; used within node.Do.
type stability struct {
	sentIn    uint64         // the view in which the last broadcast was written
	stable    uint64         // stream.Stable() after the previous step
	processed uint64         // stream.Processed() after the previous step
	lossy     int            // members in stream.Incomplete() after the previous step
	current   *rounds.Rounds // nil: the group is static
	consumers
}

// afterStep gives signs to those who wait. It is called within node.Do.
func (g *session) afterStep(now protocol.Time) {
	g.stepDirect()
	if g.deliverable() {
		if g.config.OnMessage != nil {
			g.prefetchInStep(now)
		} else {
			g.handOver(now)
		}
	}
	g.stream.Arrived(func(id uint64) { g.topics[id].handOver(now) })
	unwritten, restarts := int64(g.stream.Unwritten()), g.stream.Restarts()
	if unwritten != g.unwritten.Load() || restarts != g.restarts.Load() {
		g.restarts.Store(restarts) // first: nothing unwritten must not look like all sent
		g.unwritten.Store(unwritten)
		notify.Signal(g.written)
	}
	g.watchProgram(now)
	stable, processed, lossy := g.stream.Stable(), g.stream.Processed(), len(g.stream.Incomplete())
	if stable != g.stable || processed != g.processed || lossy != g.lossy {
		g.stable, g.processed, g.lossy = stable, processed, lossy
		g.changed.Notify()
	}
	g.endTooLong()
	g.checkImpaired(now)
	if received := g.received.Load(); received != g.noted && g.machine.Slow() {
		g.noted = received
		g.machine.Received(now)
	}
	g.machine.Settle(now)
}

// Rank returns this process's rank.
func (g *session) Rank() int { return int(g.self.Rank) }

// Self returns this process as the others see it, with its address and its meta.
func (g *session) Self() Member {
	if m := g.view.Load().Members.Find(g.self.Rank); m != nil && m.Incarnation == g.self.Incarnation {
		return memberOf(m)
	}
	if m := g.own.Load(); m != nil {
		return memberOf(m) // it is no longer in the view
	}
	return memberOf(&g.self) // its group is static
}

// Size returns the number of members of the current view.
func (g *session) Size() int { return g.view.Load().Members.Len() }

// newSession assembles a member: the machine that has its protocols, the node that drives it
// and, unless the group is static, detectors. The unicast channel may be nil.
func newSession(group *Group, c Config, s *initialState, u member.Unicast, gap *GapError) (*session, error) {
	g := &session{
		group: group, delivery: &group.delivery,
		config: c, self: s.self, topics: make(map[uint64]*Subscription),
		log:       c.Logger.With("group", c.Group, "rank", s.self.Rank),
		network:   network{client: clientOf(&c), listening: s.listening},
		views:     views{view: &s.current},
		admitting: admitting{revoked: s.revoked, reachSlots: admission.NewSlots(maxReach)},
		troubles:  troubles{suspects: make(map[protocol.Rank]Suspect)},
		sending: sending{
			sendLock: make(chan struct{}, 1), metaLock: make(chan struct{}, 1),
			tracing: tracing{lock: make(chan struct{}, 1)}, written: make(chan struct{}, 1),
		},
	}
	if t, ok := s.transport.(interface{ LocalError() (time.Time, error) }); ok {
		g.localError = t.LocalError
	}
	if t, ok := s.transport.(interface{ Queued(protocol.Rank) int }); ok {
		g.queued = t.Queued
	}
	g.joined = time.Now()
	g.life, g.end = context.WithCancelCause(context.Background())
	if c.Static && g.self.Incarnation == member.FirstIncarnation {
		g.self.Incarnation = uint64(time.Now().UnixNano())
	}
	g.initLimit(s)
	g.vote = datadir.Vote{Folder: s.data, Logger: g.log, Saved: g.saved}
	g.addresses, _ = s.transport.(transport.AddressBook)
	g.elsewhere = s.elsewhere
	g.roster, _ = s.transport.(transport.Roster)
	var err error
	if g.machine, err = member.New(g.memberConfig(s, u)); err != nil {
		return nil, err
	}
	g.stream = g.machine.Stream()
	g.view.Store(&s.view)
	g.noteView(&s.view, membership.Members{})
	g.catchUp = catchup.New(catchup.Config{
		MemberConfig: lifecycle.MemberConfig{Self: g.self, Tell: c.Expect > 0, Began: s.began, Elsewhere: s.elsewhere},
		Machine:      g.machine, Client: g.client, Logger: g.log, Life: g.life, Go: g.asking.Go, Moved: g.moved,
		Do: func(f func(protocol.Time)) error { return g.node.Do(f) }, Look: func(f func()) { g.node.Look(f) },
	})
	g.makeDirect(s)
	g.makeReplica(&s.view)
	g.makeCurrent()
	g.announce(gap)
	n := node.Config{Transport: s.transport, Protocol: g.machine, AfterStep: g.afterStep, Logger: g.log}
	_, n.Precise = s.transport.(*tcp.Transport) // others may be in the virtual time of a test
	if c.OnMessage != nil {
		n.Program = program{g}
	}
	if c.Static {
		g.node = node.New(n)
		return g, g.node.Start()
	}
	return g, g.startViews(s, u, n)
}

// memberConfig is how this member begins, and what it tells the group.
func (g *session) memberConfig(s *initialState, u member.Unicast) member.Config {
	l := g.config.Limits
	c := member.Config{
		Self: g.self, View: s.view, Start: s.start, Static: g.config.Static, Unicast: u,
		Stream: stream.Config{
			Shape: g.config.Network.Shape, SegmentSize: l.SegmentSize, InlineSize: l.InlineSize, MaxMessage: l.MaxMessage,
			KeepBytes: l.KeepBytes, InboxBytes: l.InboxBytes, OutboxBytes: l.OutboxBytes, Drop: l.Overflow == Drop, Replicate: g.config.State != nil, Echo: g.config.Delivery.Echo, Begins: g.config.OnView != nil, AllTopics: g.config.OnMessage != nil,
		},
		Membership:  membership.Config{NoQuorum: g.config.AllowMinority, Decisions: s.decisions, ProbeTimeout: protocol.Time(max(g.config.Detection.SuspicionTimeout, 0))},
		Heartbeat:   heartbeatTimes(&g.config),
		SlowTimeout: protocol.Time(l.SlowTimeout), MaxDirect: l.maxDirect() + directHead,
		OnView: g.installView, OnSilence: g.handleSilence, OnReport: g.noteReport, OnState: g.updateState,
		OnSlow: func(after protocol.Time, why string) {
			g.log.Warn("leaving: "+why, "for", time.Duration(after))
		},
	}
	if g.vote.Folder != nil {
		c.Save = g.vote.Save
	}
	return c
}

// startViews starts a member that agrees on views with others.
func (g *session) startViews(s *initialState, u member.Unicast, c node.Config) error {
	g.detection = detection.NewDetection(&detection.Config{
		Self: g.self, Group: g.config.Group, Secret: secretOf(&g.config), StartTimeout: g.config.Detection.StartTimeout, Listening: s.inherited,
		Dial: g.config.Network.Dial, Detectors: g.config.Detection.Detectors,
	})
	early := g.catchUp.Early
	if g.config.Network.Transport != nil {
		early = nil // its processes have no addresses that could be asked
	}
	g.noteAdmissions(&s.view, membership.Members{})
	g.setPeers(&s.view, membership.Members{})
	c.Watcher, c.HandleRequest = g.detection.Watcher(g.removed, early), g.handleRequest
	g.node = node.New(c)
	err := g.vote.Folder.Begin(membership.NewSeat(s.self, s.view, s.decisions), 0)
	if err == nil {
		err = g.detection.Start(&s.view, g.elsewhere.Address, g.handleReport)
	}
	if err == nil {
		err = g.node.Start()
	}
	if err != nil {
		return errors.Join(err, g.node.Close(), g.detection.Close())
	}
	g.catchUp.Start(s.seeds)
	switch {
	case g.config.Network.Transport != nil || u != nil:
	case g.limit.group.Load().most < g.limit.own:
		g.asking.Go(g.raiseLimit)
	case s.sends == 0 && s.began == nil:
		g.asking.Go(g.compareSettings)
	}
	if g.config.Security.TLS != nil {
		g.asking.Go(g.watchExpiry)
	}
	if g.config.Security.followed != (admission.Followed{}) {
		g.asking.Go(g.followFiles)
	}
	return g.node.Do(func(now protocol.Time) {
		g.machine.Start(now)
		if g.config.Meta != g.self.Meta { // it has begun together with others, which do not know it
			_ = g.machine.SetMeta(now, g.config.Meta) // its length was checked
		}
	})
}

// heartbeatTimes is how this member exchanges heartbeats.
func heartbeatTimes(c *Config) heartbeat.Config {
	return heartbeat.Times(protocol.Time(c.Detection.HeartbeatInterval), protocol.Time(c.Detection.SuspicionTimeout), !c.AllowMinority)
}

// handleSilence takes a report of the heartbeats, within node.Do.
func (g *session) handleSilence(r protocol.Rank, silent bool) { g.detection.Silence(r, silent) }

// handleReport passes a detector's report to the member.
func (g *session) handleReport(r detect.Report) {
	_ = g.node.Do(func(now protocol.Time) {
		g.machine.Report(now, member.Report{
			Rank: r.Rank, Incarnation: r.Incarnation, Alive: r.Alive, Silent: errors.Is(r.Cause, detect.ErrSilent), Cause: r.Cause,
		})
	})
}

// removed says that a member of a later view does not let this process connect.
func (g *session) removed(view uint64, holder *membership.Member) {
	_ = g.node.Do(func(now protocol.Time) { g.machine.Removed(now, view, holder) })
}

// saved says that the vote of this member is on the disk, or why it is not.
func (g *session) saved(err error) {
	_ = g.node.Do(func(now protocol.Time) { g.machine.Saved(now, err) })
}

// impairedPeriod is how long a process counts as impaired after an error of its own at
// opening or accepting a connection. Within it, connections are tried again.
const impairedPeriod = 10 * time.Second

// checkImpaired finds out whether this process lacks the means to reach others, as file
// descriptors. It is called within node.Do.
func (g *session) checkImpaired(now protocol.Time) {
	if g.localError == nil || g.machine.Static() {
		return
	}
	at, err := g.localError()
	impaired := err != nil && time.Since(at) < impairedPeriod
	if impaired == g.impaired {
		return
	}
	g.impaired = impaired
	if !impaired { // otherwise the transport has logged why
		g.log.Info("connections can be opened again", "after", err)
	}
	g.machine.SetImpaired(now, impaired)
}
