package handoff

import "github.com/pleach-go/pleach/protocol"

// Time is the driver's time.
type Time = protocol.Time

// Config configures a [Machine]. All members use the same.
type Config struct {
	// Partitions is the number of partitions.
	Partitions int
	// Lease is how long a new owner waits for one that has not released a partition and is
	// not in the view. An owner stops within four fifths of it after a majority was last
	// known to be in its view. If zero, there is no such wait: owners exclude each other by
	// their tokens alone.
	Lease Time
	// Handoff is how long an owner may drain a partition.
	Handoff Time
	// Floor is a number that the first tokens are above, if this process is one of those that
	// begin the set of shards.
	Floor uint64
}

// Actions is what a driver does after a step, in this order.
type Actions struct {
	// Stop are partitions whose work ends now: they are not served any more.
	Stop []Item
	// Drain are partitions whose work should end: then the driver calls Drained.
	Drain []Item
	// Begin are partitions that this process owns from now on.
	Begin []Item
	// Lapse means that the work of all partitions ends now. Those that are held are served
	// again after the next Confirm.
	Lapse bool
	// Send are messages for all other members.
	Send []Message
}

// Machine is one member's part. What goes in are views, messages, confirmations and the end
// of work; after each of these, and at Next, the driver calls Tick and does what Take
// returns.
type Machine struct {
	c       Config
	self    Process
	view    uint64           // 0: none yet
	in      map[Process]bool // the members of the view: whether they have reported in it
	missing int              // members that have not
	owners  *Map
	parts   []partition
	until   Time // when the lease ends
	agreed  Time // when a majority was first known to be in this view; Never: not yet
	ticked  Time // when Tick was last called
	awake   Time // when this process has run for long enough to vouch for its view
	lapsed  bool
	leaving bool
	terms   agreement
	pending []Message // of views that this member has not installed yet
	out     Actions
}

// state is what this process does with a partition.
type state uint8

const (
	idle state = iota
	held
	draining
)

// nobody is the owner of a partition that has none.
const nobody = -1

// partition is what this process does with a partition, and what it knows of other owners.
type partition struct {
	state    state
	token    uint64
	deadline Time // end of draining

	target, before Process // by the map of this view, and of the one before
	since          Time    // when this process has given it up late

	holder   Process // the last owner that is known; nobody: it is gone, or there was none
	held     uint64  // its token
	released bool    // it has released the partition, and no other process can have begun
	told     Time    // when it has told this process that it holds it
}

// New returns the machine of a process that has no view yet.
func New(c Config) *Machine {
	m := &Machine{c: c, owners: NewMap(c.Partitions), parts: make([]partition, c.Partitions), lapsed: true}
	m.terms.Settings = Settings{Partitions: c.Partitions, Lease: c.Lease, Handoff: c.Handoff}
	m.terms.Floor = min(c.Floor, MaxFloor)
	for p := range m.parts {
		none := Process{Rank: nobody}
		m.parts[p] = partition{target: none, before: none, holder: none}
	}
	return m
}

// Install begins a view, or resumes it after its quorum was lost and regained.
func (m *Machine) Install(now Time, self Process, view uint64, members []Member) {
	if m.c.Lease == 0 {
		m.until, m.lapsed = protocol.Never, false
	}
	if view == m.view && self == m.self {
		return
	}
	follows := view == m.view+1 && self == m.self
	m.self, m.view, m.agreed = self, view, protocol.Never
	if m.c.Lease == 0 {
		m.agreed = now
	}
	m.in, m.missing = make(map[Process]bool, len(members)), 0
	for i := range members {
		m.in[members[i].Process] = members[i].Process == self
		if members[i].Process != self {
			m.missing++
		}
	}
	m.owners.Update(members)
	for p := range m.parts {
		m.move(now, p, follows)
	}
	m.installTerms(members)
	m.out.Send = append(m.out.Send, m.Report())
	pending := m.pending
	m.pending = nil
	for _, msg := range pending {
		m.Receive(now, msg)
	}
	m.settle()
}

// move has a partition follow a new map. If the view does not follow the last one, other
// members may have owned the partition meanwhile, and what is known of it is void.
func (m *Machine) move(now Time, p int, follows bool) {
	part := &m.parts[p]
	part.before, part.target = part.target, Process{Rank: nobody}
	if owner, ok := m.owners.Owner(p); ok {
		part.target = owner.Process
	}
	if part.state != idle && !follows {
		m.stop(p)
	}
	if part.state == held && part.target != m.self {
		part.state, part.deadline = draining, now+m.c.Handoff
		if now >= m.until { // others may not wait for it any more
			m.stop(p)
		} else {
			m.out.Drain = append(m.out.Drain, Item{p, part.token})
		}
	}
	_, present := m.in[part.holder]
	gone := part.holder.Rank != nobody && !present && !part.released
	if !follows || part.released && part.before != m.self && part.before != part.holder {
		gone, part.released = true, false
	}
	if gone {
		part.holder = Process{Rank: nobody}
	}
}

// Tick has time pass: leases and handoffs end, and partitions begin. It is called every fifth
// of Config.Lease, or more often.
func (m *Machine) Tick(now Time) {
	if m.slept(now) {
		m.awake = now + m.c.Lease
	}
	m.ticked = now
	if !m.lapsed && now >= m.until {
		m.lapsed, m.out.Lapse = true, true
	}
	var begun []Item
	for p := range m.parts {
		part := &m.parts[p]
		if part.state == draining && now >= part.deadline {
			m.stop(p)
			m.release(now, p)
		}
		if part.state == idle && m.terms.agreed && now < m.until && now >= m.ready(part) {
			part.state, part.token = held, m.token()
			part.holder, part.held, part.released = m.self, part.token, false
			begun = append(begun, Item{p, part.token})
		}
	}
	if len(begun) > 0 {
		m.out.Begin = append(m.out.Begin, begun...)
		m.send(Begun, begun)
	}
}

// ready is when this process may begin to own a partition that it does not hold. The wait
// for a process that is not in the view begins when a majority is known to be in it: that
// majority confirms no earlier view any more.
func (m *Machine) ready(part *partition) Time {
	since := max(part.since, m.agreed)
	switch {
	case part.target != m.self || m.leaving:
		return protocol.Never
	case part.released:
		return 0
	case since == protocol.Never:
		return since
	case part.holder.Rank != nobody:
		return max(since, part.told) + m.c.Handoff + m.c.Lease
	case m.missing > 0:
		return since + m.c.Handoff + m.c.Lease
	default:
		return since + m.c.Lease
	}
}

// Next is when Tick has something to do, at the latest.
func (m *Machine) Next() Time {
	next := m.until
	if m.lapsed {
		next = protocol.Never
	}
	for p := range m.parts {
		switch part := &m.parts[p]; part.state {
		case draining:
			next = min(next, part.deadline)
		case idle:
			if !m.lapsed && m.terms.agreed {
				next = min(next, m.ready(part))
			}
		}
	}
	return next
}

// Take returns what the driver has to do.
func (m *Machine) Take() Actions {
	out := m.out
	m.out = Actions{}
	return out
}

// Serves returns the token of a partition, or false if this process must not serve it.
func (m *Machine) Serves(now Time, p int) (token uint64, ok bool) {
	part := &m.parts[p]
	return part.token, part.state == held && now < m.until
}

// Owner returns the process that owns a partition as far as this one knows, and its token.
func (m *Machine) Owner(p int) (owner Process, token uint64, ok bool) {
	part := &m.parts[p]
	if part.state != idle {
		return m.self, part.token, true
	}
	return part.holder, part.held, part.holder.Rank != nobody && part.holder != m.self && !part.released
}

// Target returns the process that the map of the view names for a partition.
func (m *Machine) Target(p int) (owner Process, ok bool) {
	target := m.parts[p].target
	return target, target.Rank != nobody
}

// Holds returns how many partitions this process holds, those included that it drains.
func (m *Machine) Holds() (n int) {
	for p := range m.parts {
		if m.parts[p].state != idle {
			n++
		}
	}
	return n
}
