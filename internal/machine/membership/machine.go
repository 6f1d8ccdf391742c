package membership

import (
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

// Machine is the state of one member. See the package comment for how to drive it.
type Machine struct {
	config     Config
	now        protocol.Time // the time of the last call
	view       View
	cut        []Position               // where the view began
	self       int                      // this member's index in the view
	electorate electorate               // who counts in the view
	memo       *memo                    // derived from the view
	names      map[string]protocol.Rank // by identity; nil: not needed yet
	done       error                    // why this member has stopped; nil: it has not

	acceptor   acceptor   // state about the next view
	proposer   *proposer  // the attempt of this member; nil: none
	commitCast commitCast // the broadcast of the last commit
	history    []*value   // the last decisions, in order, for stragglers
	later      *frame     // the commit after the decided one, until that is installed

	claims     claims
	suspicions suspicions
	observed
	reporter reporter
	status   status
	durable  durable
	restored bool // it is a restarted voter, which has lost its messages; see Restore
	requests
	leaving  bool
	impaired bool // see SetImpaired
	abstains bool // see abstain
	window   window
	attempting
	queued
	stats Stats
}

// requests are the changes that members and candidates ask for.
type requests struct {
	leavers    []suspect  // members that want to leave
	wanted     attributes // those that this member wants
	metas      []metaRequest
	raise      raise
	candidates []candidate
	pending    []pending
}

// attempting is when this member tries to bring about the next view.
type attempting struct {
	pace           pace
	pause          protocol.Time // no attempt before this time
	attemptTimeout protocol.Time // the timeout of the next attempt
	seen           uint32        // the highest round in a refusal
}

// observed is what this member has noticed about the others in the present view.
type observed struct {
	live     liveness
	silence  silence
	awaiting awaiting
	doubt    doubt
}

// queued is what the driver has yet to take.
type queued struct {
	outbox  []send
	sent    int    // how many of outbox Next has returned
	waiting []send // frames that wait for the vote to be saved
	buffer  []byte
	answers []Answer
}

// send is one queued frame.
type send struct {
	to    protocol.Rank
	frame frame
}

// New returns the machine of one member.
func New(c Config) (*Machine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return newMachine(c, &memo{}), nil
}

// newMachine returns a machine for a checked config.
func newMachine(c Config, k *memo) *Machine {
	m := &Machine{
		config: c, memo: k, attempting: attempting{attemptTimeout: c.firstAttemptTimeout(c.View.Members.Len())},
		durable: durable{changed: true, sync: true},
	}
	m.enter(&c.View)
	m.wanted = c.Self.attributes()
	m.history = c.Decisions.historyUpTo(c.View.Number)
	m.config.Decisions = Decisions{}
	m.commitCast.due, m.reporter.due = protocol.Never, protocol.Never
	m.reporter.to = protocol.NoRank
	return m
}

// enter makes v the current view.
func (m *Machine) enter(v *View) {
	before := m.view.Members
	m.view = *v
	m.observed = observed{doubt: doubt{quiet: m.doubt.quiet}}
	m.self, _ = v.index(m.config.Self.Rank)
	m.electorate = v.electorate()
	m.electorate.arbiter = m.config.Arbiter
	m.claims.arbitration = arbitration{}
	if m.names != nil {
		for gone := range before.Since(v.Members) {
			delete(m.names, gone.Identity)
		}
		for joined := range v.Members.Since(before) {
			m.names[joined.Identity] = joined.Rank
		}
	}
}

// named returns the index of the member with an identity. It is asked only about
// candidates, so in most groups the map is never made. Views then change it.
func (m *Machine) named(identity string) (int, bool) {
	if m.names == nil {
		m.names = make(map[string]protocol.Rank, m.view.Members.Len())
		for _, member := range m.view.Members.All() {
			m.names[member.Identity] = member.Rank
		}
	}
	r, ok := m.names[identity]
	if !ok {
		return 0, false
	}
	return m.view.index(r)
}

// Receive handles a frame from a peer. It does not keep b. It returns an error if
// the frame is invalid; such a frame has no effect.
func (m *Machine) Receive(now protocol.Time, from protocol.Rank, b []byte) error {
	m.now = now
	f, err := parse(from, b)
	if err == nil && m.done == nil {
		err = m.dispatch(now, f)
		m.consider(now) // and not only when the outbox is empty: an attempt that is too late ends
	}
	if err != nil {
		return fmt.Errorf("from rank %d: %w", from, err)
	}
	return nil
}

// dispatch sorts frames by the view of their sender. Only members of the same view
// agree on the next one; a sender that is behind gets the decisions it misses.
func (m *Machine) dispatch(now protocol.Time, f *frame) error {
	switch {
	case f.kind == Commit:
		return m.handleCommit(now, f)
	case f.kind == Removed:
		m.handleRemoved(f)
	case f.view < m.view.Number:
		if f.kind != Promise && f.kind != Accept && f.kind != Cancel && f.kind != Pong { // late answers about what is decided
			m.sendMissed(f)
		}
	case f.view > m.view.Number:
		m.catchUp(now, f.from)
	case m.view.Holds(f.from, f.incarnation):
		m.heard(f.from)
		m.holderShown(f.from)
		return m.handle(now, f)
	}
	return nil
}

// handle handles a frame of the current view.
func (m *Machine) handle(now protocol.Time, f *frame) error {
	if f.members != nil && !f.members.fits(m.view.Members.Len()) {
		return fmt.Errorf("%w: %v: a set of another view than %d", ErrFrame, f.kind, m.view.Number)
	}
	for _, r := range f.reports {
		if !m.view.Has(r.by) {
			return fmt.Errorf("%w: %v by rank %d, which is not in view %d", ErrFrame, f.kind, r.by, m.view.Number)
		}
	}
	if f.kind == Prepare || f.kind == Cancel || f.kind == Propose {
		if !m.view.Has(f.ballot.Rank) || f.ballot.Rank == m.config.Self.Rank {
			return fmt.Errorf("%w: %v of ballot %v, whose owner cannot have sent it", ErrFrame, f.kind, f.ballot)
		}
	}
	if m.acceptor.decided != nil {
		if f.kind == Status || f.kind == Prepare || f.kind == Propose || f.kind == Ping {
			m.sendMissed(f)
		}
		return nil
	}
	switch f.kind {
	case Promise, Refuse, Accept, Pong:
		m.answered(f.from, f.members)
	case Prepare, Cancel, Propose:
		m.attempts(f.ballot.Rank)
	case Ping:
		m.attempts(f.from)
	}
	switch f.kind {
	case Status:
		m.handleStatus(f)
	case Report:
		if m.handleReport(now, f) || m.abstains {
			m.put(f.from, frame{kind: Status}) // see awaitAnswer
		}
	case Leave:
		m.handleLeave(now, f.from, f.incarnation)
		m.sendAbstention(f.from)
	case MetaChange:
		m.handleMetaChange(now, f.from, f.incarnation, f.wanted)
		m.sendAbstention(f.from)
	case Raise:
		m.handleRaise(now, f.version)
		m.sendAbstention(f.from)
	case JoinRequest:
		m.sendAbstention(f.from)
		return m.handleJoinRequest(now, f.candidate)
	case Pong:
		m.holderAnswered(f.from)
	case Prepare:
		return m.handlePrepare(now, f)
	case Promise:
		return m.handlePromise(now, f)
	case Refuse:
		m.handleRefuse(now, f)
	case Cancel:
		m.handleCancel(now, f)
	case Propose:
		return m.handlePropose(now, f)
	case Accept:
		m.handleAccept(now, f)
	case Ping:
		if !m.unsaved() { // or it would be asked to vote, and could not
			m.put(f.from, frame{kind: Pong})
		}
	}
	return nil
}

// LogFlushed says that the log may have completed the last Flush.
func (m *Machine) LogFlushed(now protocol.Time) {
	m.now = now
	if m.done != nil {
		return
	}
	if why := m.acceptor.ends; why != nil && !m.unsaved() {
		m.end(why)
		return
	}
	m.tryAccept(now)
	m.tryInstall(now)
}

// Up says that a peer is connected. Frames sent before may be lost, so the two
// exchange the numbers of their views.
func (m *Machine) Up(now protocol.Time, peer protocol.Rank) {
	m.now = now
	if m.isMember(peer) && peer != m.config.Self.Rank {
		m.answered(peer, nil)
		m.put(peer, frame{kind: Status})
		if m.reporter.to == peer && m.reporter.due != protocol.Never {
			m.reporter.due = now
		}
	}
}

// Next returns the next frame to send, valid until the next call, or false if
// there is none for now.
func (m *Machine) Next(now protocol.Time) (to protocol.Rank, b []byte, ok bool) {
	m.now = now
	if m.sent == len(m.outbox) {
		m.outbox, m.sent = append(m.outbox[:0], m.waiting...), 0
		m.waiting = m.waiting[:0]
		m.tick(now)
	}
	for m.sent < len(m.outbox) {
		s := m.outbox[m.sent]
		m.outbox[m.sent] = send{}
		m.sent++
		if m.waits(s.frame.kind) {
			m.waiting = append(m.waiting, s)
			continue
		}
		m.buffer = s.frame.append(m.buffer[:0])
		m.stats.Sent[s.frame.kind]++
		return s.to, m.buffer, true
	}
	return protocol.NoRank, nil, false
}

// put queues a frame. It copies the sets, since the machine changes them later.
func (m *Machine) put(to protocol.Rank, f frame) {
	f.view, f.incarnation = m.view.Number, m.config.Self.Incarnation
	f.abstains, f.members = m.abstains, slices.Clone(f.members)
	m.outbox = append(m.outbox, send{to, f})
}

// View returns the current view.
func (m *Machine) View() View { return m.view }
