package sequencer

// A small model of a group, to run machines in: broadcasts of each sender arrive in order, at
// different times at different members; a view change cuts every stream at the same place for
// all members that go on. Members that are cut off go on in the old view among themselves.
// Programs receive later than the group does, and learn of views at their own time.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
)

// cast is a broadcast in a member's inbox. If it begins a view, it is none.
type cast struct {
	view   uint64
	from   int
	body   []byte
	begins bool
}

// process is a member of the model.
type process struct {
	self    Member
	machine *Machine
	dead    bool // killed: it does nothing any more
	outside bool // cut off: it goes on in its last view
	view    uint64
	members []Member
	told    uint64 // the view that the machine knows
	lacking bool   // it has yet to get the state
	inbox   []cast
	sent    [][]byte    // in its view
	got     map[int]int // of each sender, in its view
	taken   []byte      // a frame to broadcast that its driver has taken, and not sent yet
	takenIn uint64
	forward *Forward // on its way to the leader
	acks    []cast   // acknowledgments that have arrived
	submits int
	// What its program has received.
	delivered []Message
}

// group is the model.
type group struct {
	rng       *rand.Rand
	safe      bool
	processes []*process
	view      uint64
	changing  bool // a view change is due
	joins     int
	// Where each view begins: the order, and what is delivered.
	snapshots map[uint64][]byte
	states    map[uint64][]Message
	steps     int
	wrong     string
}

func newGroup(seed uint64, members, submits int, safe bool) *group {
	g := &group{
		rng: rand.New(rand.NewPCG(seed, 1)), safe: safe, view: 1, snapshots: make(map[uint64][]byte),
		states: make(map[uint64][]Message),
	}
	for r := range members {
		g.add(Member{r, 1}, submits)
	}
	g.install()
	return g
}

func (g *group) add(self Member, submits int) *process {
	p := &process{self: self, submits: submits, machine: New(Config{Self: self, Safe: g.safe, MaxBatch: 40})}
	g.processes = append(g.processes, p)
	return p
}

// inside returns the processes that are in the present view of the group and live.
func (g *group) inside() (in []*process) {
	for _, p := range g.processes {
		if !p.dead && !p.outside {
			in = append(in, p)
		}
	}
	slices.SortFunc(in, func(a, b *process) int { return a.self.Rank - b.self.Rank })
	return in
}

// peer returns the process of a rank that another one can reach: in its view, on its side.
func (g *group) peer(p *process, rank int) *process {
	for _, o := range g.processes {
		if o.self.Rank == rank && !o.dead && o.view == p.view && o.outside == p.outside &&
			slices.Contains(p.members, o.self) {
			return o
		}
	}
	return nil
}

// install begins the present view at all processes that are inside.
func (g *group) install() {
	var members []Member
	for _, p := range g.inside() {
		members = append(members, p.self)
	}
	for _, p := range g.inside() {
		p.view, p.members, p.sent, p.got = g.view, members, nil, make(map[int]int)
		p.inbox = append(p.inbox, cast{view: g.view, begins: true})
	}
}

// changeView gives all processes that go on what any of them has, and begins the next view.
func (g *group) changeView() {
	in := g.inside()
	for _, s := range g.processes {
		end := len(s.sent)
		if s.view != g.view {
			continue
		}
		if s.dead || s.outside {
			end = 0
			for _, p := range in {
				end = max(end, p.got[s.self.Rank])
			}
		}
		for _, p := range in {
			for p != s && p.view == g.view && p.got[s.self.Rank] < end {
				g.deliver(s, p)
			}
		}
	}
	g.changing = false
	g.view++
	g.install()
}

// deliver brings the next broadcast of a sender to the inbox of a process.
func (g *group) deliver(s, p *process) {
	n := p.got[s.self.Rank]
	p.got[s.self.Rank]++
	p.inbox = append(p.inbox, cast{view: p.view, from: s.self.Rank, body: s.sent[n]})
}

// fail kills a process, or cuts it off.
func (g *group) fail(p *process, cut bool) {
	p.dead, p.outside = !cut, cut
	g.changing = true
}

// join adds a process, which gets the state.
func (g *group) join(submits int) {
	rank := 0
	for slices.ContainsFunc(g.inside(), func(p *process) bool { return p.self.Rank == rank }) {
		rank++
	}
	p := g.add(Member{rank, g.view + 1}, submits)
	p.lacking = true
	p.view = 0
	g.joins++
	g.changeView()
}

// step does one thing that can happen next. It reports false if nothing can.
func (g *group) step() bool {
	var can []func()
	may := func(f func()) { can = append(can, f) }
	if g.changing {
		may(g.changeView)
	}
	for _, p := range g.processes {
		if !p.dead && p.view > 0 {
			g.pull(p)
		}
	}
	for _, p := range g.processes {
		if !p.dead && p.view > 0 {
			g.stepsOf(p, may)
		}
	}
	if len(can) == 0 {
		return false
	}
	g.steps++
	can[g.rng.IntN(len(can))]()
	return true
}

func (g *group) stepsOf(p *process, may func(func())) {
	for _, rank := range ranksOf(p.members) { // the group delivers
		if s := g.peer(p, rank); s != nil && s != p && p.got[rank] < len(s.sent) {
			may(func() { g.deliver(s, p) })
		}
	}
	if len(p.inbox) > 0 && (!p.lacking || g.skipToState(p)) {
		may(func() { g.receive(p) })
	}
	if p.told < p.view {
		may(func() { p.told = p.view; p.machine.View(p.view, p.members, len(p.members)) })
	}
	if p.submits > 0 {
		may(func() {
			p.submits--
			p.machine.Submit("t", fmt.Appendf(nil, "%d.%d-%d", p.self.Rank, p.self.Incarnation, p.submits))
		})
	}
	g.sendsOf(p, may)
}

// sendsOf are the steps of a process's driver.
func (g *group) sendsOf(p *process, may func(func())) {
	if p.taken != nil {
		may(func() {
			p.sent = append(p.sent, p.taken)
			p.inbox = append(p.inbox, cast{view: p.view, from: p.self.Rank, body: p.taken})
			p.taken = nil
			p.machine.CastDone(p.takenIn, g.rng.IntN(8) == 0) // some are reported to have failed
		})
	}
	if p.forward != nil {
		may(func() { g.arrive(p) })
	}
	if len(p.acks) > 0 {
		may(func() {
			a := p.acks[0]
			p.acks = p.acks[1:]
			_ = p.machine.Acknowledge(a.from, a.body)
		})
	}
}

// pull has the driver of a process take what its machine wants to send.
func (g *group) pull(p *process) {
	if p.taken == nil {
		p.takenIn, p.taken, _ = p.machine.NextCast()
	}
	if p.forward == nil {
		if f, ok := p.machine.NextForward(); ok {
			p.forward = &f
		}
	}
	if to, body, ok := p.machine.NextAck(); ok {
		if l := g.peer(p, to); l != nil {
			l.acks = append(l.acks, cast{from: p.self.Rank, body: body})
		}
	}
}

// arrive brings what a process forwards to the leader. The reply may get lost.
func (g *group) arrive(p *process) {
	f := p.forward
	p.forward = nil
	l := g.peer(p, f.To)
	failed := l == nil || l.machine.Accept(p.self.Rank, f.Body) != nil || g.rng.IntN(8) == 0
	if failed && !p.outside { // a process that is cut off would try for ever
		p.machine.ForwardFailed(f.View)
	}
}

// receive has a program receive the next message of its group.
func (g *group) receive(p *process) {
	c := p.inbox[0]
	p.inbox = p.inbox[1:]
	if c.begins {
		g.beginView(p, c.view)
		return
	}
	messages, err := p.machine.Receive(c.view, c.from, c.body)
	if err != nil {
		g.wrong = err.Error()
	}
	p.delivered = append(p.delivered, messages...)
}

// skipToState drops what came to a joiner before the first view whose state it can get. It
// reports false if there is none yet.
func (g *group) skipToState(p *process) bool {
	i := slices.IndexFunc(p.inbox, func(c cast) bool { return c.begins && g.snapshots[c.view] != nil })
	if i > 0 {
		p.inbox = p.inbox[i:]
	}
	return i >= 0
}

// beginView compares what all members have where a view begins, and gives it to joiners.
func (g *group) beginView(p *process, view uint64) {
	was, ok := g.snapshots[view]
	if p.lacking {
		if err := p.machine.Restore(was); err != nil {
			g.wrong = err.Error()
		}
		p.lacking = false
		p.delivered = slices.Clone(g.states[view])
		return
	}
	is := p.machine.Snapshot()
	if ok && !bytes.Equal(was, is) {
		g.wrong = fmt.Sprintf("view %d begins differently at rank %d", view, p.self.Rank)
	}
	g.snapshots[view], g.states[view] = is, p.delivered[:len(p.delivered):len(p.delivered)]
}

// run goes on until nothing can happen any more, or it takes too long.
func (g *group) run(most int) {
	for g.wrong == "" && g.step() {
		if g.steps > most {
			g.wrong = "no end"
		}
	}
}

// check returns what is wrong in the end, or nothing.
func (g *group) check(submits int) string {
	if g.wrong != "" {
		return g.wrong
	}
	in := g.inside()
	for _, p := range in {
		if text := p.check(); text != "" {
			return text
		}
		if !slices.EqualFunc(p.delivered, in[0].delivered, same) {
			return fmt.Sprintf("ranks %d and %d differ:\n%v\n%v", in[0].self.Rank, p.self.Rank, texts(in[0].delivered),
				texts(p.delivered))
		}
		own := 0
		for _, d := range p.delivered {
			if d.Origin == p.self {
				own++
			}
		}
		if left := p.machine.Pending(); left != 0 {
			return fmt.Sprintf("rank %d has %d bytes that are not numbered", p.self.Rank, left)
		}
		if own != submits {
			return fmt.Sprintf("of rank %d, %d of %d were delivered", p.self.Rank, own, submits)
		}
	}
	for _, p := range g.processes {
		if !g.safe || !p.dead && !p.outside {
			continue
		}
		if n := len(p.delivered); n > len(in[0].delivered) || !slices.EqualFunc(p.delivered, in[0].delivered[:n], same) {
			return fmt.Sprintf("rank %d, which is gone, has delivered what the others have not:\n%v\n%v", p.self.Rank,
				texts(p.delivered), texts(in[0].delivered))
		}
	}
	return ""
}

// check returns what is wrong with what a process has delivered by itself.
func (p *process) check() string {
	last := make(map[Member]int)
	for i, d := range p.delivered {
		if d.Number != uint64(i+1) {
			return fmt.Sprintf("rank %d has %d in place %d", p.self.Rank, d.Number, i+1)
		}
		var rank, incarnation, number int
		if _, err := fmt.Sscanf(string(d.Data), "%d.%d-%d", &rank, &incarnation, &number); err != nil ||
			(Member{rank, uint64(incarnation)}) != d.Origin {
			return fmt.Sprintf("rank %d has %q of %v", p.self.Rank, d.Data, d.Origin)
		}
		if before, ok := last[d.Origin]; ok && number != before-1 {
			return fmt.Sprintf("rank %d has %d of %v behind %d", p.self.Rank, number, d.Origin, before)
		}
		last[d.Origin] = number
	}
	return ""
}

func same(a, b Message) bool {
	return a.Origin == b.Origin && a.Number == b.Number && bytes.Equal(a.Data, b.Data)
}

func ranksOf(members []Member) (ranks []int) {
	for _, m := range members {
		ranks = append(ranks, m.Rank)
	}
	return ranks
}

func texts(messages []Message) (t []string) {
	for _, m := range messages {
		t = append(t, string(m.Data))
	}
	return t
}
