// Package member puts the protocols of one member together: streams carry broadcasts,
// the membership protocol agrees on views, neighbors exchange heartbeats, channels carry
// what members tell single members, and a unicast channel carries the messages of
// collectives.
//
// A [Machine] is one complete member, and a state machine without I/O like its parts. So
// a driver over sockets and one that simulates a whole group under one seed run the same
// member. What a driver adds is I/O only: connections, the clock, the detectors' probes
// and the program.
//
// A driver calls the methods that node.Protocol names for what happens on the network.
// After each step, when it has sent all frames of [Machine.Next], it calls
// [Machine.Settle]. A Machine is not safe for concurrent use.
package member

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// FirstIncarnation is that of every member in the first view of a group: the number of
// that view.
const FirstIncarnation = 1

// Config describes a member, what it begins with, and what its driver wants to know.
type Config struct {
	// Self is this member, and View its first view. Start is its position in every
	// stream.
	Self  membership.Member
	View  membership.View
	Start []membership.Position
	// Static fixes the membership: there is one view and there are no heartbeats.
	Static bool
	// Stream has the limits of the streams. New fills in the rest.
	Stream stream.Config
	// Membership has the times of the membership protocol. New fills in the rest.
	Membership membership.Config
	// Heartbeat has the times of the heartbeats. New fills in the rest.
	Heartbeat heartbeat.Config
	// SlowTimeout is how long a program may receive nothing while its inbox is full, and
	// after which a process leaves that is starved of CPU while others wait for it. If zero, 5 s.
	SlowTimeout protocol.Time
	// MaxDirect is the longest message that a member sends to a single member. If zero,
	// 1 GiB.
	MaxDirect int
	// Unicast is nil if there is none.
	Unicast Unicast

	// The following are called within the machine's methods, and must not call any that
	// changes it. Those that are nil are not called.

	// OnView is called with every new view, after the streams have installed it.
	OnView func(v *membership.View)
	// OnSilence is called when the heartbeats find a neighbor silent, and when they hear
	// it again. The driver passes it to its detectors, whose reports come back by Report.
	OnSilence func(neighbor protocol.Rank, silent bool)
	// OnReport is called with each report that counts, and the member it is about.
	OnReport func(r Report, about membership.Member)
	// OnSlow is called when this member leaves because it holds the others up, with the
	// reason.
	OnSlow func(after protocol.Time, why string)
	// Save, if not nil, saves the state of a member that can vote again after a
	// restart: see [membership.Machine.Unsaved]. It does not wait for the disk: the driver
	// calls Saved later. Until then the member sends no frame of view changes. What could not
	// be saved is saved again, by another call.
	Save func(state []byte, sync bool)
	// Ask, if not nil, asks the arbiter of the group: see [membership.Config]. It does not wait for
	// the answer: the driver calls Judge later.
	Ask func(membership.Claim)
	// OnState is called by Settle when the state, or who is reachable, may have changed.
	OnState func()
}

// Machine is one complete member.
type Machine struct {
	config Config
	stream *stream.Member
	views  *membership.Machine // nil: the group is static
	heart  *heartbeat.Machine  // nil: the group is static
	direct *p2p.Endpoint       // nil: the group is static
	now    protocol.Time       // of the present call

	// changed says that the membership protocol may have an answer or a new state, and
	// acts that it may have a frame to send: Settle and Next look only then, not after
	// every message.
	changed, acts bool

	neighbors neighbors
	quiet     bool // a neighbor has missed heartbeats
	reports   reports
	joins     joins
	slow      slowProgram
	starved   slowProcess
	saver     saver
	flushing  bool // a view waits for the streams to reach its cut
	last      byte // the first byte of the frame that Next returned last
	buffer    []byte
}

// New makes a member. Unless the group is static, Start begins it.
func New(c Config) (*Machine, error) {
	m := &Machine{config: c}
	s := c.Stream
	s.Rank, s.Size, s.Incarnation = c.Self.Rank, c.View.Slots, c.Self.Incarnation
	if !c.Static {
		s.View, s.Members, s.Start = c.View.Number, members{c.View.Members}, streamPositions(c.Start)
	}
	var err error
	m.stream, err = stream.New(s)
	if err != nil || c.Static {
		return m, err
	}
	v := c.Membership
	v.Self, v.View, v.Log, v.Durable, v.Arbiter = c.Self, c.View, m, c.Save != nil, c.Ask != nil
	v.DoubtTimeout = c.Heartbeat.Timeout * 3 / 20
	m.views, err = membership.New(v)
	if err != nil {
		return nil, fmt.Errorf("member: %w", err)
	}
	m.saver = saver{views: m.views, save: c.Save}
	h := c.Heartbeat
	h.Report = m.handleSilence
	m.heart = heartbeat.New(h)
	return m, m.makeDirect()
}

// Start opens connections to the neighbors, and exchanges heartbeats over them.
func (m *Machine) Start(now protocol.Time) {
	m.now = now
	if m.views != nil {
		m.acts = true
		m.saver.begin()
		m.connectNeighbors(&m.config.View)
	}
}

// Settle ends a step, after all frames were sent: the member looks at its program, and
// tells what has changed.
func (m *Machine) Settle(now protocol.Time) {
	m.now = now
	m.stream.Settle(now)
	m.checkProgram(now)
	m.checkProcess(now)
	if !m.changed {
		return
	}
	m.changed = false
	m.answerJoins()
	if s, _ := m.views.State(); s == membership.Evicted || s == membership.Left {
		m.heart.Watch(now, nil)
	}
	if m.config.OnState != nil {
		m.config.OnState()
	}
}

// enter begins a call that may change the state of the membership.
func (m *Machine) enter(now protocol.Time) {
	m.now = now
	m.viewsChanged()
}

// viewsChanged records that something has happened in the membership protocol.
func (m *Machine) viewsChanged() { m.changed, m.acts = true, true }

// Static reports whether the membership is fixed. The methods about views are for groups
// that are not.
func (m *Machine) Static() bool { return m.views == nil }

// Stream returns the streams, for the program to write to and to receive from.
func (m *Machine) Stream() *stream.Member { return m.stream }

// Unicast returns the unicast channel, or nil.
func (m *Machine) Unicast() Unicast { return m.config.Unicast }

// View returns the current view.
func (m *Machine) View() membership.View { return m.views.View() }

// State returns whether this process is a member, and unless it is, why.
func (m *Machine) State() (membership.State, error) { return m.views.State() }

// Quorum returns how many members are reachable, how many have to be, and whether those
// that are may decide the next view.
func (m *Machine) Quorum() (reachable, needed int, ok bool) { return m.views.Quorum() }

// Unreachable returns the ranks of the members that cannot be reached, in ascending order.
func (m *Machine) Unreachable() []protocol.Rank { return m.views.Unreachable() }

// Changes yields how the view that is being installed differs from the one before, within
// OnView; see [membership.Machine.Changes].
func (m *Machine) Changes(yield func(membership.Change) bool) {
	if m.views != nil {
		m.views.Changes(yield)
	}
}

// ViewCount returns how many views this member has installed since its first one.
func (m *Machine) ViewCount() uint64 {
	if m.views == nil {
		return 0
	}
	return m.views.Stats().Changes
}

// Accusers returns which members suspect which; see [membership.Machine.Accusers].
func (m *Machine) Accusers() map[protocol.Rank][]protocol.Rank { return m.views.Accusers() }

// ForceView lets some members decide the next view without a quorum; see
// [membership.Machine.ForceView].
func (m *Machine) ForceView(now protocol.Time, ranks []protocol.Rank) error {
	m.enter(now)
	return m.views.ForceView(now, ranks)
}

// Evict asks for a view without a member; see [membership.Machine.Evict].
func (m *Machine) Evict(now protocol.Time, r protocol.Rank, incarnation uint64, cause membership.Cause) error {
	m.enter(now)
	return m.views.Evict(now, r, incarnation, cause)
}

// Judge takes the answer of the arbiter; see [membership.Machine.Judge].
func (m *Machine) Judge(now protocol.Time, c membership.Claim, v membership.Verdict) {
	m.enter(now)
	m.views.Judge(now, c, v)
}

// RaiseVersion asks for a view with a higher protocol version; see
// [membership.Machine.RaiseVersion].
func (m *Machine) RaiseVersion(now protocol.Time, version uint16) error {
	m.enter(now)
	return m.views.RaiseVersion(now, version)
}

// Removed says that a member of a later view does not let this one connect: see
// [membership.Machine.Removed].
func (m *Machine) Removed(now protocol.Time, view uint64, holder *membership.Member) {
	m.enter(now)
	m.views.Removed(now, view, holder)
}

// Decisions returns the last decisions, for a member that is behind and does not know this
// one; see [membership.Machine.Learn].
func (m *Machine) Decisions() membership.Decisions { return m.views.Decisions() }

// DecisionsUpTo returns the last decisions up to a view, which may be one without this
// member.
func (m *Machine) DecisionsUpTo(view uint64) membership.Decisions { return m.views.DecisionsUpTo(view) }

// ErrNotStuck is returned by Learn if the member needs no decisions of a process that it
// does not know.
var ErrNotStuck = errors.New("member: it needs no decisions of others")

// Stuck reports whether the member can neither decide the next view nor has all that it
// needs to leave the present one.
func (m *Machine) Stuck() bool {
	_, _, quorum := m.views.Quorum()
	return !quorum || m.stream.Frozen()
}

// Behind reports whether a view of the group shows that this member, which is stuck, is
// behind, and whether the members have continued without it.
func (m *Machine) Behind(v *membership.View) (behind, removed bool) {
	behind = m.Stuck() && v.Number > m.views.View().Number
	return behind, behind && !v.Holds(m.config.Self.Rank, m.config.Self.Incarnation)
}

// Learn takes decisions from a process that has joined since the view of this member. Only
// a member that is stuck does: others get them from members that they know.
func (m *Machine) Learn(now protocol.Time, d membership.Decisions) error {
	if !m.Stuck() {
		return ErrNotStuck
	}
	m.enter(now)
	return m.views.Learn(now, d)
}

// SetObserver asks for a view in which this member is an observer, or a voter; see
// [membership.Machine.SetObserver].
func (m *Machine) SetObserver(now protocol.Time, observer bool) error {
	m.enter(now)
	return m.views.SetObserver(now, observer)
}

// SetMeta asks for a view in which this member has another meta; see
// [membership.Machine.SetMeta].
func (m *Machine) SetMeta(now protocol.Time, meta string) error {
	m.enter(now)
	return m.views.SetMeta(now, meta)
}

// SetSynced asks for a view in which this member has the state of the group.
func (m *Machine) SetSynced(now protocol.Time) {
	m.enter(now)
	m.views.SetSynced(now)
}

// Leave asks the other members for a view without this one.
func (m *Machine) Leave(now protocol.Time) {
	m.enter(now)
	m.views.Leave(now)
}
