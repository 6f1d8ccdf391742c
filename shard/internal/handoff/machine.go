package handoff

import (
	"slices"

	"github.com/pleach-go/pleach/protocol"
)

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
	since          Time    // when the map came to name this process, or the last holder went

	holder   Process // the last owner that is known; nobody: it is gone, or there was none
	held     uint64  // its token
	released bool    // it has released the partition, and no other process can have begun
	told     Time    // when it has told this process that it holds it
}

// New returns the machine of a process that has no view yet.
func New(c Config) *Machine {
	m := &Machine{c: c, owners: NewMap(c.Partitions), parts: make([]partition, c.Partitions), lapsed: true}
	for p := range m.parts {
		none := Process{Rank: nobody}
		m.parts[p] = partition{target: none, before: none, holder: none}
	}
	return m
}

// Install has a view begin, or go on after the quorum was lost in it.
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
	m.out.Send = append(m.out.Send, m.Report())
	pending := m.pending
	m.pending = nil
	for _, msg := range pending {
		m.Receive(now, msg)
	}
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
	if gone || part.target != part.before {
		part.since = now
	}
}

func (m *Machine) send(k Kind, items []Item) {
	m.out.Send = append(m.out.Send, Message{k, m.view, m.self, items})
}

// Receive takes a message of another member.
func (m *Machine) Receive(now Time, msg Message) {
	switch {
	case msg.From == m.self:
	case msg.View > m.view:
		if most := 64 + 4*len(m.in); len(m.pending) >= most { // what is lost is waited for by time
			m.pending = slices.Delete(m.pending, 0, 1)
		}
		m.pending = append(m.pending, msg)
	case msg.Kind == Report:
		m.takeReport(now, &msg)
	default:
		for _, item := range msg.Items {
			m.learn(now, item, &msg)
		}
	}
}

// takeReport takes what a member holds. What it held before and does not report is not held
// by it.
func (m *Machine) takeReport(now Time, msg *Message) {
	reported, present := m.in[msg.From]
	if msg.View != m.view || !present {
		return
	}
	if !reported {
		m.in[msg.From] = true
		m.missing--
	}
	for p := range m.parts {
		if part := &m.parts[p]; part.holder == msg.From && !part.released {
			part.holder = Process{Rank: nobody}
		}
	}
	for _, item := range msg.Items {
		m.learn(now, item, msg)
	}
}

// learn takes what a member says of a partition, unless a later owner is known.
func (m *Machine) learn(now Time, item Item, msg *Message) {
	part := &m.parts[item.Partition]
	if item.Token < part.held {
		return
	}
	_, present := m.in[msg.From]
	if msg.Kind != Released {
		if present && !(part.released && part.held == item.Token) {
			part.holder, part.held, part.released, part.told = msg.From, item.Token, false, now
		}
		return
	}
	// Another process may have begun in the view of the release, if the map named it.
	exclusive := msg.View == m.view || msg.View+1 == m.view && (part.before == m.self || part.before == msg.From)
	part.holder, part.held, part.released = msg.From, item.Token, exclusive
	if !exclusive {
		part.holder = Process{Rank: nobody}
	}
}

// Confirm says that a majority of the members of a view was in it at a moment after sent.
func (m *Machine) Confirm(now, sent Time, view uint64) {
	if m.c.Lease == 0 || view != m.view {
		return
	}
	m.agreed = min(m.agreed, now)
	if until := sent + m.c.Lease/5*4; until > m.until {
		m.until, m.lapsed = until, false
	}
}

// Vouches reports whether this process may tell others that it is in a view. One that did not
// run for a while may have missed the next view, and waits until it would know.
func (m *Machine) Vouches(now Time, view uint64) bool {
	return view == m.view && now >= m.awake && !m.slept(now)
}

// slept reports whether Tick is long overdue.
func (m *Machine) slept(now Time) bool { return m.ticked > 0 && now-m.ticked > m.c.Lease/5*2 }

// Suspend says that this process has no quorum, or is no member: it serves nothing.
func (m *Machine) Suspend() { m.until = 0 }

// Leave drains everything. This process begins nothing any more.
func (m *Machine) Leave(now Time) {
	m.leaving = true
	for p := range m.parts {
		if part := &m.parts[p]; part.state == held {
			part.state, part.deadline = draining, now+m.c.Handoff
			m.out.Drain = append(m.out.Drain, Item{p, part.token})
		}
	}
}

// Drained says that the work of a partition has ended that was to be drained.
func (m *Machine) Drained(now Time, item Item) {
	part := &m.parts[item.Partition]
	if part.state == draining && part.token == item.Token {
		m.release(now, item.Partition)
	}
}

// release ends the ownership of a partition that was drained. If that is late, others may
// have begun, and are told nothing.
func (m *Machine) release(now Time, p int) {
	part := &m.parts[p]
	part.state = idle
	part.holder, part.held, part.released = m.self, part.token, now <= part.deadline+m.c.Lease/4
	switch {
	case !part.released:
		part.holder, part.since = Process{Rank: nobody}, now
	case m.leaving || part.target != m.self:
		m.releases(Item{p, part.token})
	}
}

// releases adds to the message of a step, so that one has all that is released together.
func (m *Machine) releases(item Item) {
	for i := range m.out.Send {
		if msg := &m.out.Send[i]; msg.Kind == Released && msg.View == m.view {
			msg.Items = append(msg.Items, item)
			return
		}
	}
	m.send(Released, []Item{item})
}

// stop ends the ownership of a partition without a word.
func (m *Machine) stop(p int) {
	part := &m.parts[p]
	part.state, part.holder = idle, Process{Rank: nobody}
	m.out.Stop = append(m.out.Stop, Item{p, part.token})
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
		if part.state == idle && now < m.until && now >= m.ready(part) {
			part.state, part.token = held, m.view
			part.holder, part.held, part.released = m.self, m.view, false
			begun = append(begun, Item{p, m.view})
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
			if !m.lapsed {
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

// Until is when the lease ends.
func (m *Machine) Until() Time { return m.until }

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

// Missing returns the members of the view whose reports have not arrived.
func (m *Machine) Missing() (missing []Process) {
	for p, reported := range m.in {
		if !reported {
			missing = append(missing, p)
		}
	}
	return missing
}

// Report returns the report of this process in its view, for members that lack it.
func (m *Machine) Report() Message {
	msg := Message{Report, m.view, m.self, nil}
	for p := range m.parts {
		if part := &m.parts[p]; part.state != idle {
			msg.Items = append(msg.Items, Item{p, part.token})
		}
	}
	return msg
}
