package simulation

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
)

// checker holds the members to what the group promises. It sees everything, which no
// member does.
type checker struct {
	sim    *Simulation
	err    error
	groups []*group // in the order in which they began
	// receipts are what members have proofs of.
	receipts []receipt
	// services is what it knows of what services do.
	services serviceChecker
}

// group is what processes are in that have agreed on its first view, and on all later ones.
type group struct {
	views   map[uint64]membership.View
	newest  uint64
	members map[identity]*process
	left    map[identity]bool // members that have left, or were removed
	states  map[uint64]uint64 // of programs, where views begin
}

// identity names a process in views.
type identity struct {
	name        string
	incarnation uint64
}

func (p *process) key() identity { return identity{p.self.Identity, p.self.Incarnation} }

// history is what one process has seen.
type history struct {
	views   []uint64
	from    []received // by the sender's id
	lost    []uint64   // the views in which messages were lost
	begun   uint64     // the last view that its program was told of
	drained bool       // its program has received all that it will
}

// received is what a process has received of a sender: messages without a gap.
type received struct {
	started   bool
	next      int
	processed int // messages before it that its program has said to have processed
	ranges    []messageRange
}

// messageRange is the messages that were delivered in a view.
type messageRange struct {
	view     uint64
	from, to int
}

func (h *history) last() uint64 { return h.views[len(h.views)-1] }

func (h *history) of(sender *process) *received {
	for len(h.from) <= sender.id {
		h.from = append(h.from, received{})
	}
	return &h.from[sender.id]
}

// fail records the first broken promise.
func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("at %.6f s: %s", float64(c.sim.now)/1e9, fmt.Sprintf(format, args...))
	}
}

// register records which process a member is.
func (c *checker) register(p *process) {
	if q := p.group.members[p.key()]; q != nil {
		c.fail("%v and %v are the same member", p, q)
	}
	p.group.members[p.key()] = p
}

// belongs finds the group of a process that has got a view from others or from its disk.
func (c *checker) belongs(p *process, v *membership.View) {
	for _, g := range c.groups {
		if known, ok := g.views[v.Number]; ok && known.Equal(v) {
			p.group = g
			return
		}
	}
	switch {
	case v.Number > 1:
		c.fail("%v has %v, which no group has decided", p, v)
	case len(c.groups) > 0 && c.sim.plan.begin != founded:
		c.fail("%v begins another group", p)
	}
	for _, g := range c.groups {
		if c.sim.quorum(g, g.newest, false) {
			c.fail("%v begins another group beside one that goes on", p)
		}
	}
	p.group = &group{
		views: map[uint64]membership.View{1: *v}, newest: 1, members: make(map[identity]*process),
		left: make(map[identity]bool),
	}
	c.groups = append(c.groups, p.group)
	c.sim.result.Groups++
	c.sim.result.Views++
}

// decided checks that there is one view of a number in a group.
func (c *checker) decided(p *process, v *membership.View) {
	g := p.group
	known, ok := g.views[v.Number]
	if !ok {
		known = *v
		g.views[v.Number] = known
		g.newest = max(g.newest, v.Number)
		c.sim.result.Views++
	}
	if !known.Equal(v) {
		c.fail("%v installs %v, but others %v", p, v, &known)
	}
}

// installed checks a view: agreement, numbers that rise by one, one process per identity.
func (c *checker) installed(p *process, v *membership.View) {
	c.decided(p, v)
	c.sim.checkCut(p, v)
	c.checkStrange(p, v)
	if m, ok := v.Member(p.self.Rank); !ok || m.Incarnation != p.self.Incarnation {
		return // the view that ends its membership
	}
	if h := &p.history; len(h.views) > 0 && v.Number != h.last()+1 {
		c.fail("%v installs view %d after %d", p, v.Number, h.last())
	}
	p.history.views = append(p.history.views, v.Number)
	names := make(map[string]bool)
	for _, m := range v.Members.All() {
		if names[m.Identity] {
			c.fail("%v has two processes of %s", v, m.Identity)
		}
		names[m.Identity] = true
		if m.Version < v.Version {
			c.fail("%v has protocol version %d, which %s does not speak", v, v.Version, m.Identity)
		}
	}
	if before, ok := p.group.views[v.Number-1]; ok && v.Version < before.Version {
		c.fail("%v has protocol version %d, after %d", v, v.Version, before.Version)
	}
	c.checkRoles(p.group, v)
	c.checkGrant(p.group, v)
}

// delivered checks a message: the receiver and the sender are in its view, and the
// messages of a sender come in order, without gap or duplicate, in one view for all.
func (c *checker) delivered(p *process, m *stream.Message) {
	v, ok := p.group.views[m.View]
	sender, inView := v.Member(m.Root)
	inView = inView || m.Begins
	self, selfInView := v.Member(p.self.Rank)
	switch {
	case !ok || !slices.Contains(p.history.views, m.View):
		c.fail("%v gets a message of view %d, which it has not installed", p, m.View)
		return
	case !inView || !selfInView || self.Incarnation != p.self.Incarnation:
		c.fail("%v gets a message of rank %d in view %d: one of them is not in it", p, m.Root, m.View)
		return
	case m.Lost > 0:
		p.history.lost = append(p.history.lost, m.View)
		c.sim.record(p, "is told that %d segments of rank %d are lost", m.Lost, m.Root)
		return
	}
	c.begins(p, m)
	if m.Begins {
		return
	}
	q := p.group.members[identity{sender.Identity, sender.Incarnation}]
	if q == nil {
		c.fail("%v gets a message of rank %d, which has not begun", p, m.Root)
		return
	}
	c.sim.result.Delivered++
	c.sim.hash.add(uint64(c.sim.now), uint64(p.id), uint64(q.id), uint64(len(m.Data)), m.View)
	c.inOrder(p, q, m)
}

// inOrder checks that a message is the next one of its sender.
func (c *checker) inOrder(p, q *process, m *stream.Message) {
	r, sent := p.history.of(q), q.program.sent
	if !r.started {
		r.started = true
		if first := p.history.views[0]; first > 1 {
			r.next = firstSince(sent, first, m.Data)
		}
	}
	if len(p.history.lost) > 0 { // after a loss, which is checked at the end
		for r.next < len(sent) && !bytes.Equal(sent[r.next].data, m.Data) {
			r.next++
		}
	}
	if r.next >= len(sent) || !bytes.Equal(sent[r.next].data, m.Data) {
		c.fail("%v gets a message of %v that is not its message %d: %d bytes in view %d", p, q, r.next, len(m.Data), m.View)
		return
	}
	if label := &sent[r.next].view; *label == 0 {
		*label = m.View
	} else if *label != m.View {
		c.fail("%v gets message %d of %v in view %d, others in view %d", p, r.next, q, m.View, *label)
	}
	if n := len(r.ranges); n > 0 && r.ranges[n-1].view == m.View {
		r.ranges[n-1].to = r.next + 1
	} else {
		r.ranges = append(r.ranges, messageRange{m.View, r.next, r.next + 1})
	}
	r.next++
}

// firstSince returns the first message that may have been sent since a view. What no
// member has received so far may have been sent before.
func firstSince(sent []message, view uint64, data []byte) int {
	for i := range sent {
		if label := sent[i].view; label >= view || label == 0 && bytes.Equal(sent[i].data, data) {
			return i
		}
	}
	return len(sent)
}

// receipt is a proof that a member has the first messages of a sender.
type receipt struct {
	sender, member *process
	messages       int
}

// receipt checks that all members of a receipt have everything up to the poll. That their programs
// receive it can be told at the end only.
func (c *checker) receipt(p *process, poll *poll) {
	c.sim.result.Receipts++
	c.accounted(p)
	if proven := p.machine.Stream().Proven(); proven < poll.said {
		c.fail("%v has a receipt for %d broadcasts, and counts %d as proven", p, poll.said, proven)
	}
	v := p.group.views[p.history.last()]
	root := stream.MemberID{Rank: p.self.Rank, Incarnation: p.self.Incarnation}
	for _, m := range v.Members.All() {
		q := p.group.members[identity{m.Identity, m.Incarnation}]
		if q == p || q == nil || q.history.views[0] > poll.view {
			continue // it has joined after the poll
		}
		if before, whole, ok := q.machine.Stream().Received(root); ok && (before < poll.upTo || !whole) {
			c.fail("%v has a receipt of view %d for %d segments that names %v, which has %d (whole: %t)", p, v.Number, poll.upTo,
				q, before, whole)
		}
		c.receipts = append(c.receipts, receipt{p, q, poll.messages})
	}
}

// processed checks that the programs of all members have processed everything up to a poll, their
// own messages included if they get them.
func (c *checker) processed(p *process, poll *poll) {
	c.sim.result.Processed++
	if poll.messages == 0 {
		return
	}
	v := p.group.views[p.history.last()]
	for _, m := range v.Members.All() {
		q := p.group.members[identity{m.Identity, m.Incarnation}]
		if q == nil || q.history.views[0] > p.program.sent[poll.messages-1].sentIn || q == p && !c.sim.plan.stream.Replicate {
			continue // it has joined later, or gets no messages of its own
		}
		if r := q.history.of(p); r.processed < poll.messages && len(q.history.lost) == 0 {
			c.fail("%v has a receipt that %v has processed %d messages, which has processed %d", p, q, poll.messages,
				r.processed)
		}
	}
}

// accounted checks that a stream counts the broadcasts of its program. When a membership ends,
// those without a receipt are reported to the program, as many as the stream has counted.
func (c *checker) accounted(p *process) {
	if accepted, said := p.machine.Stream().Accepted(), p.program.said; accepted < said || accepted > said+1 {
		c.fail("%v has counted %d broadcasts, and %d have returned", p, accepted, said)
	}
}

// kept checks that the program of a member has received what another one has a receipt for.
func (c *checker) kept(r *receipt) {
	h := &r.member.history
	if r.messages == 0 || !h.drained || len(h.lost) > 0 || h.views[0] > r.sender.program.sent[r.messages-1].sentIn {
		return // it has ended before, has lost something, or has joined later
	}
	if next := h.of(r.sender).next; next < r.messages {
		c.fail("%v has a receipt for %d messages by %v, which has received %d", r.sender, r.messages, r.member, next)
	}
}

// finish checks what can be told at the end only: members that went from a view to the
// next together have received the same in the first, and no member of a view lost
// anything that another one has.
func (c *checker) finish() {
	type viewOf struct {
		group *group
		view  uint64
	}
	finished := make(map[viewOf][]*process)
	for _, p := range c.sim.processes {
		h := &p.history
		if p.machine != nil {
			c.accounted(p)
		}
		for _, view := range h.lost {
			if c.stayed(p, view) && !c.nobodyHas(p.group, view) {
				c.fail("%v has lost messages in view %d, where it stayed", p, view)
			}
		}
		if p.state == running && p.machine.Stream().Pending() == 0 {
			h.drained = true
		}
		for i := 1; i < len(h.views) && h.drained; i++ {
			view := viewOf{p.group, h.views[i-1]}
			finished[view] = append(finished[view], p)
		}
	}
	for i := range c.receipts {
		c.kept(&c.receipts[i])
	}
	for _, g := range c.groups {
		for view := range g.newest {
			for _, sender := range c.sim.processes {
				c.same(view, finished[viewOf{g, view}], sender)
			}
		}
	}
}

// stayed reports whether a process was a member in the view after one, or in one as it ended.
func (c *checker) stayed(p *process, view uint64) bool {
	return view < p.history.last() || p.state == running && c.sim.calm
}

// nobodyHas reports whether what was lost in a view can be had from nobody: a member has died
// in the view, or right after it, and all others have lost something. Members that were
// started again have voted for a cut whose messages only the dead one had.
func (c *checker) nobodyHas(g *group, view uint64) bool {
	died := false
	for _, p := range c.sim.processes {
		h := &p.history
		switch {
		case p.group != g || !slices.Contains(h.views, view):
		case p.state != running && h.last() <= view+1:
			died = true
		case c.stayed(p, view) && !slices.Contains(h.lost, view):
			return false
		}
	}
	return died
}

// same checks that members have received the same of a sender in a view.
func (c *checker) same(view uint64, members []*process, sender *process) {
	var first *process
	var want messageRange
	for _, p := range members {
		if p == sender {
			continue
		}
		got := messageRange{view: view}
		for _, r := range p.history.of(sender).ranges {
			if r.view == view {
				got = r
			}
		}
		if first == nil {
			first, want = p, got
		} else if got != want {
			c.fail("in view %d, %v has received messages %d to %d of %v, and %v %d to %d", view, first, want.from, want.to,
				sender, p, got.from, got.to)
		}
	}
}
