package stream

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/base/queue"
	"github.com/pleach-go/pleach/protocol"
)

// Member is one process's part in all streams of a group. The package comment says how
// to drive it.
type Member struct {
	config Config
	view   uint64 // its number
	roster roster
	pacing
	flows    map[protocol.Rank]*flow
	lastFlow *flow // of the last frame
	agenda
	outbox queue.Queue[send]
	own    ownStream
	viewChange
	inbox      inbox
	processing []*flow // those with marks in the queues; see processed.go
	peers
	activeRoots
	repairs
	lastSent send // the last frame returned by Next
	memory
	arrivals []Arrival // see trace.go
	stats    Stats
}

// pacing is when corrections start, and how long they wait.
type pacing struct {
	correctionPlan *broadcast.Plan // with the delay as last measured
	delay          delay
	skew           skew
	budget         budget
}

// agenda is what there is to do later.
type agenda struct {
	scheduled []*flow       // flows with a deadline, or that wait for the inbox
	due       protocol.Time // the earliest deadline
}

// viewChange is the state between two views; see view.go.
type viewChange struct {
	former     Members    // of the view before; nil if unknown
	endedFlows []*flow    // those that ended with the present view
	frozen     bool       // the next view is being agreed upon
	heldBytes  int        // bytes that are not delivered while frozen
	cut        []Position // of the view that is about to end
}

// peers is the state of peers that are slow, unresponsive or unreachable.
type peers struct {
	backlogs map[protocol.Rank]*backlog // of peers whose queues are full
	missed   map[protocol.Rank][]*flow  // the streams of which they have missed something; see missed.go
	stalled  map[protocol.Rank]bool     // members that do not answer polls; see stable.go
	awaited  bool                       // a root waits for what this member lacks; see TakeAwaited
	down     map[protocol.Rank]bool     // peers that could not be reached at the last attempt
	retryDue protocol.Time              // when to try the nearest of them again
}

// activeRoots is how many roots share the windows; see window.go.
type activeRoots struct {
	active    int // those that have sent lately, at most
	activeDue protocol.Time
}

// memory is what is used again.
type memory struct {
	spare      spareMemory
	repairHead []byte
	frames     slab
	// lent to the transport for a peer's long frame; see receivebuffer.go
	receiveBuffers map[protocol.Rank]*reassemblyBuffer
}

// Message is a message for the program, or a notice that some are lost.
type Message struct {
	// Root is the sender. Data is shared with the member, which may still forward it: it
	// must not be modified.
	Root protocol.Rank
	Data []byte
	// Label has the topic that the message was sent to, and its header, if it has them.
	Label
	// View is the number of the view in which it was sent.
	View uint64
	// Lost, if not 0, makes this a notice without Data: that many messages of the root,
	// behind those delivered before, cannot be had any more. This member was cut off for
	// longer than others keep them. See count.go.
	Lost uint64
	// Begins makes this a notice, too: View begins here. All messages of the views before
	// are delivered.
	Begins bool
	// Position numbers the messages and notices of a queue, from 1, for [Member.NoteProcessed].
	Position uint64
	// Lease is for [Member.Release]. It is nil if there is nothing to release.
	Lease *Lease
}

// Stats counts what a member has done.
type Stats struct {
	Broadcast, Delivered           uint64 // messages
	BroadcastBytes, DeliveredBytes uint64 // of them
	Relayed, Grafted, Repaired     uint64 // segments sent along the tree, to orphans, and on request
	Offers, Requests               uint64 // sent
	// segments received twice, first by correction, given up, refused by a full inbox
	Duplicates, Early, Lost, Refused uint64
	Delay                            protocol.Time
	Propagation                      Propagation
}

// New returns a member.
func New(c Config) (*Member, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Member{
		config: c,
		view:   c.View,
		pacing: pacing{delay: delay{wait: initialWait}, skew: skew{mean: initialSkew, fixed: c.Lead}},
		flows:  make(map[protocol.Rank]*flow),
		agenda: agenda{due: protocol.Never},
		peers: peers{
			backlogs: make(map[protocol.Rank]*backlog),
			missed:   make(map[protocol.Rank][]*flow),
			stalled:  make(map[protocol.Rank]bool),
			down:     make(map[protocol.Rank]bool),
			retryDue: protocol.Never,
		},
		memory: memory{receiveBuffers: make(map[protocol.Rank]*reassemblyBuffer)},
	}
	if err := m.setRoster(c.Size, c.Members); err != nil {
		return nil, err
	}
	m.own.pollDue, m.own.processedDue, m.own.creditDue = protocol.Never, protocol.Never, protocol.Never
	own, err := m.open(c.Rank, c.Incarnation)
	if err != nil {
		return nil, err
	}
	m.own.flow, m.own.window, m.lastFlow = own, initialWindow, own
	for _, start := range c.Start {
		if start.Rank == c.Rank || !m.roster.includes(start.Rank, start.Incarnation) {
			continue // the stream of a process that is not in the view
		}
		f, _ := m.open(start.Rank, start.Incarnation) // the tree was made for its own stream
		f.next, f.wanted, f.viewStart, f.delivered, f.store.low = start.Next, start.Next, start.Next, start.Next, start.Next
		f.count.unknown = start.Next > 0
	}
	return m, nil
}

// open begins a flow.
func (m *Member) open(root protocol.Rank, incarnation uint64) (*flow, error) {
	f := &flow{root: root, incarnation: incarnation, ahead: make(map[uint64]segment)}
	if err := m.route(f); err != nil {
		return nil, err
	}
	f.correction.due, f.pull.due, f.tailProbe.due = protocol.Never, protocol.Never, protocol.Never
	f.credit.to = f.parent
	m.flows[root] = f
	return f, nil
}

// flowsByRoot returns all flows in order of root. What reaches the wire or the program
// must not depend on the order of a map, or the same inputs would have other results.
func (m *Member) flowsByRoot() []*flow {
	flows := slices.Collect(maps.Values(m.flows))
	slices.SortFunc(flows, func(a, b *flow) int { return int(a.root - b.root) })
	return flows
}

// flowOfFrame returns the flow that a frame concerns, or nil if its root is not in the
// view, or not in that incarnation. If the view accepts any incarnation, a newer one
// replaces the flow. A flow that has ended is returned for requests only.
func (m *Member) flowOfFrame(fr *frame) *flow {
	f := m.lastFlow
	if f.root != fr.root {
		f = m.flows[fr.root]
	}
	switch {
	case f != nil && f.incarnation == fr.incarnation:
		m.lastFlow = f
		return f
	case !m.roster.includes(fr.root, fr.incarnation):
		return m.endedFlow(fr)
	case f != nil && f.incarnation > fr.incarnation, fr.root == m.config.Rank:
		return nil
	case f != nil:
		same := func(t *flow) bool { return t == f }
		m.scheduled, m.processing = slices.DeleteFunc(m.scheduled, same), slices.DeleteFunc(m.processing, same)
	}
	m.lastFlow, _ = m.open(fr.root, fr.incarnation) // the same tree was made at the start
	return m.lastFlow
}

// endedFlow returns the flow that a request concerns, if it ended with this view.
func (m *Member) endedFlow(fr *frame) *flow {
	if fr.kind == request {
		for _, f := range m.endedFlows {
			if f.root == fr.root && f.incarnation == fr.incarnation {
				return f
			}
		}
	}
	return nil
}

// Stats returns the member's counters.
func (m *Member) Stats() Stats {
	m.stats.Delay = m.delay.wait
	return m.stats
}
