package pleach

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/catchup"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/datadir"
	"github.com/pleach-go/pleach/internal/driver/detection"
	"github.com/pleach-go/pleach/internal/driver/node"
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
// whose process joins again has another one. Each of its parts has a type and a file, and sees
// the core and the parts that it is given.
type session struct {
	*core
	group     *Group
	vote      datadir.Vote // its Dir is nil if the vote is not saved
	network   network
	detection *detection.Detection // nil: the group is static
	catchUp   *catchup.Driver
	own       atomic.Pointer[membership.Member] // this process in the last view that had it
	ending    ending
	asking    sync.WaitGroup // goroutines that the end of the membership waits for
	metaLock  chan struct{}  // held by the one SetMeta that waits

	requests    requests
	candidates  candidates
	credentials credentials
	agreed      agreed
	faults      faults
	sender      sender
	tracer      tracer
	direct      directs
	calls       calls
	receipts    receipts
	receiver    receiver
	consumers   consumers
	replica     replica
}

// core is what all parts of a membership work on: its machines, the node that drives them, the
// present view, and whether this process is a member.
type core struct {
	config  Config
	self    membership.Member
	log     *slog.Logger // names this member in every line
	node    *node.Node
	machine *member.Machine // used only within node.Do
	stream  *stream.Member  // the machine's streams; used only within node.Do

	view      *atomic.Pointer[membership.View]
	changed   notify.Notifier // notifies when there is a new view, or more is stable or known to be lost
	life      context.Context // ends with this process's membership; its cause is Err
	end       context.CancelCauseFunc
	quorumErr atomic.Pointer[QuorumError]
	shown     atomic.Pointer[View]  // what View returned last
	removal   atomic.Pointer[error] // why this process is about to be no longer a member
}

// ending is how a membership ends.
type ending struct {
	closing sync.Once
	joined  time.Time // when this membership began
	evicted bool      // see endEvicted; used within node.Do
}

// network is what the group uses of its transport.
type network struct {
	client    *client.Client // this process, where it has no rank
	listening string         // the address of its socket
	addresses transport.AddressBook
	elsewhere lifecycle.Elsewhere // the members that are not where the view has them; used within node.Do
	roster    transport.Roster
	queued    func(protocol.Rank) int // bytes that wait in the transport for a peer; nil: it tells none
}

// afterStep gives signs to those who wait. It is called within node.Do.
func (g *session) afterStep(now protocol.Time) {
	g.direct.stepDirect(func() {
		g.tracer.reportArrivals()
		g.replica.offerState()
	})
	g.receiver.stepReceiver(now)
	g.sender.noteWritten()
	g.consumers.watchProgram(now)
	g.receipts.noteStable()
	g.agreed.endTooLong()
	g.faults.checkImpaired(now)
	g.receiver.noteReceived(now)
	g.machine.Settle(now)
}

// Rank returns this process's rank.
func (c *core) Rank() int { return int(c.self.Rank) }

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
		core: &core{
			config: c, self: s.self, view: &s.current, log: c.Logger.With("group", c.Group, "rank", s.self.Rank),
		},
		group: group, network: network{client: clientOf(&c), listening: s.listening}, metaLock: make(chan struct{}, 1),
	}
	g.makeParts(s)
	if t, ok := s.transport.(interface{ LocalError() (time.Time, error) }); ok {
		g.faults.localError = t.LocalError
	}
	if t, ok := s.transport.(interface{ Queued(protocol.Rank) int }); ok {
		g.network.queued = t.Queued
	}
	g.ending.joined = time.Now()
	g.life, g.end = context.WithCancelCause(context.Background())
	if c.Static && g.self.Incarnation == member.FirstIncarnation {
		g.self.Incarnation = uint64(time.Now().UnixNano())
	}
	g.agreed.initLimit(s)
	g.vote = datadir.Vote{Dir: s.data, Logger: g.log, Saved: g.saved}
	g.network.addresses, _ = s.transport.(transport.AddressBook)
	g.network.elsewhere = s.elsewhere
	g.network.roster, _ = s.transport.(transport.Roster)
	var err error
	g.machine, err = member.New(g.memberConfig(s, u))
	if err != nil {
		return nil, err
	}
	g.stream = g.machine.Stream()
	g.view.Store(&s.view)
	g.faults.noteView(&s.view, membership.Members{})
	g.catchUp = catchup.New(catchup.Config{
		MemberConfig: lifecycle.MemberConfig{Self: g.self, Tell: c.Expect > 0, Began: s.began, Elsewhere: s.elsewhere},
		Machine:      g.machine, Client: g.network.client, Logger: g.log, Life: g.life, Go: g.asking.Go, Moved: g.moved,
		Do: func(f func(protocol.Time)) error { return g.node.Do(f) }, Look: func(f func()) { g.node.Look(f) },
	})
	g.requests.catchUp = g.catchUp
	g.makeDirect(s)
	g.replica.makeReplica(&s.view)
	g.consumers.makeCurrent(&g.asking)
	g.calls.current = g.consumers.current
	g.receiver.announce(gap)
	n := node.Config{Transport: s.transport, Protocol: g.machine, AfterStep: g.afterStep, Logger: g.log}
	_, n.Precise = s.transport.(*tcp.Transport) // others may be in the virtual time of a test
	if c.OnMessage != nil {
		n.Program = program{&g.receiver}
	}
	if c.Static {
		g.node = node.New(n)
		return g, g.node.Start()
	}
	return g, g.startViews(s, u, n)
}

// makeParts makes the parts of a membership that are the same in each.
func (g *session) makeParts(s *initialState) {
	g.faults = faults{
		core: g.core, suspects: make(map[protocol.Rank]Suspect), arbiter: arbitrated{core: g.core},
	}
	g.candidates = candidates{core: g.core, client: g.network.client, reachSlots: admission.NewSlots(maxReach)}
	g.credentials = credentials{core: g.core, revoked: s.revoked, setPeers: g.setPeers}
	g.agreed = agreed{
		core: g.core, client: g.network.client, elsewhere: &g.network.elsewhere,
		refusals: &g.candidates.refusals,
	}
	g.sender = sender{
		core: g.core, agreed: &g.agreed, dispatchOwn: g.receiver.dispatchOwn,
		sendLock: make(chan struct{}, 1), written: make(chan struct{}, 1),
	}
	g.direct = directs{core: g.core, agreed: &g.agreed, asking: &g.asking}
	g.tracer = tracer{core: g.core, sender: &g.sender, direct: &g.direct, lock: make(chan struct{}, 1)}
	g.receipts = receipts{core: g.core, sender: &g.sender}
	g.receiver = receiver{
		core: g.core, delivery: &g.group.delivery, group: g.group, topics: make(map[uint64]*Subscription),
		sender: &g.sender, direct: &g.direct, consumers: &g.consumers, replica: &g.replica,
	}
	g.consumers = consumers{core: g.core, receiver: &g.receiver, direct: &g.direct}
	g.replica = replica{core: g.core, receiver: &g.receiver, direct: &g.direct}
	g.calls = calls{core: g.core, direct: &g.direct, handlers: &g.group.handlers}
	g.requests = requests{core: g.core, client: g.network.client, candidates: &g.candidates, agreed: &g.agreed}
}

// memberConfig is how this member begins, and what it tells the group.
func (g *session) memberConfig(s *initialState, u member.Unicast) member.Config {
	l := g.config.Limits
	c := member.Config{
		Self: g.self, View: s.view, Start: s.start, Static: g.config.Static, Unicast: u,
		Stream: stream.Config{
			Shape: g.config.Network.Shape, SegmentSize: l.SegmentSize, InlineSize: l.InlineSize, MaxMessage: l.MaxMessage,
			KeepBytes: l.KeepBytes, InboxBytes: l.InboxBytes, OutboxBytes: l.OutboxBytes, Drop: l.Overflow == Drop,
			Replicate: g.config.State != nil, Echo: g.config.Delivery.Echo, Begins: g.config.OnView != nil,
			AllTopics: g.config.OnMessage != nil,
		},
		Membership: membership.Config{
			NoQuorum: g.config.AllowMinority, Decisions: s.decisions,
			ProbeTimeout: protocol.Time(max(g.config.Detection.SuspicionTimeout, 0)),
		},
		Heartbeat:   heartbeatTimes(&g.config),
		SlowTimeout: protocol.Time(l.SlowTimeout), MaxDirect: l.maxDirect() + directHead,
		OnView: g.installView, OnSilence: g.handleSilence, OnReport: g.faults.noteReport, OnState: g.updateState,
		OnSlow: func(after protocol.Time, why string) {
			g.log.Warn("leaving: "+why, "for", time.Duration(after))
		},
	}
	if g.vote.Dir != nil {
		c.Save = g.vote.Save
	}
	c.Ask = g.faults.arbiter.asker(g.asking.Go)
	return c
}

// startViews starts a member that agrees on views with others.
func (g *session) startViews(s *initialState, u member.Unicast, c node.Config) error {
	g.detection = detection.NewDetection(&detection.Config{
		Self: g.self, Group: g.config.Group, Secret: secretOf(&g.config), StartTimeout: g.config.Detection.StartTimeout,
		Listening: s.inherited,
		Dial:      g.config.Network.Dial, Detectors: g.config.Detection.Detectors,
	})
	g.credentials.detection = g.detection
	early := g.catchUp.Early
	if g.config.Network.Transport != nil {
		early = nil // its processes have no addresses that could be asked
	}
	g.candidates.noteAdmissions(&s.view, membership.Members{})
	g.setPeers(&s.view, membership.Members{})
	c.Watcher, c.HandleRequest = g.detection.Watcher(g.removed, early), g.requests.handleRequest
	g.node = node.New(c)
	err := g.vote.Dir.Begin(membership.NewSavedVote(s.self, s.view, s.decisions), 0)
	if err == nil {
		err = g.detection.Start(&s.view, g.network.elsewhere.Address, g.handleReport)
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
	case g.agreed.limit.group.Load().most < g.agreed.limit.own:
		g.asking.Go(g.agreed.raiseLimit)
	case s.sends == 0 && s.began == nil:
		g.asking.Go(g.agreed.compareSettings)
	}
	if g.config.Security.TLS != nil {
		g.asking.Go(g.credentials.watchExpiry)
	}
	if g.config.Security.followed != (admission.Followed{}) {
		g.asking.Go(g.credentials.followFiles)
	}
	return g.node.Do(func(now protocol.Time) {
		g.machine.Start(now)
		if g.config.Meta != g.self.Meta { // it has begun together with others, which do not know it
			_ = g.machine.SetMeta(now, g.config.Meta) // its length was checked
		}
		if g.config.Observer && !g.self.Observer { // it was started again, and its vote counted on
			if err := g.machine.SetObserver(now, true); err != nil {
				g.log.Warn("this process stays a voter", "cause", publicError(err))
			}
		}
	})
}

// heartbeatTimes is how this member exchanges heartbeats.
func heartbeatTimes(c *Config) heartbeat.Config {
	return heartbeat.Times(protocol.Time(c.Detection.HeartbeatInterval), protocol.Time(c.Detection.SuspicionTimeout),
		!c.AllowMinority)
}

// handleSilence takes a report of the heartbeats, within node.Do.
func (g *session) handleSilence(r protocol.Rank, silent bool) { g.detection.Silence(r, silent) }

// handleReport passes a detector's report to the member.
func (g *session) handleReport(r detect.Report) {
	_ = g.node.Do(func(now protocol.Time) {
		g.machine.Report(now, member.Report{
			Rank: r.Rank, Incarnation: r.Incarnation, Alive: r.Alive, Silent: errors.Is(r.Cause, detect.ErrSilent),
			Cause: r.Cause,
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
func (f *faults) checkImpaired(now protocol.Time) {
	if f.localError == nil || f.machine.Static() {
		return
	}
	at, err := f.localError()
	impaired := err != nil && time.Since(at) < impairedPeriod
	if impaired == f.impaired {
		return
	}
	f.impaired = impaired
	if !impaired { // otherwise the transport has logged why
		f.log.Info("connections can be opened again", "after", err)
	}
	f.machine.SetImpaired(now, impaired)
}
