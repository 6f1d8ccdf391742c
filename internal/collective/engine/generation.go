package engine

// A process that replaces a failed one cannot take part in calls that the others have
// begun: it has neither their messages nor their numbers. So the job's processes restart
// the numbering of calls together. The processes from one admission to the next are a generation, and each
// generation has an engine of its own, as a communicator derived by Shrink has: calls are
// numbered from zero, task r is owned by rank r if it is there, and nothing of before has
// to be handed on.
//
// The number of a view says which processes a generation has: all that were in that view.
// A member's incarnation is the number of the view that has admitted it to the group, so a
// member belongs to every generation whose first view is not below it.

import (
	"cmp"
	"slices"
)

// Member is a process of the job in a view of the group. It may still wait to be admitted.
type Member struct {
	Rank int
	// Incarnation is the number of the view in which the process came to the group.
	Incarnation uint64
}

// generation is an engine's place among the generations of its job. The engine's first
// view is the generation's.
type generation struct {
	before    uint64      // the first view of the generation before
	begun     bool        // it is agreed on, so that newcomers may know of it
	view      uint64      // the latest
	members   []Member    // of that view, by rank; nil: all ranks, and no newcomer
	departed  []departure // members that have left since the first view
	told      map[Member]bool
	candidacy *candidacy // of a process that waits to be admitted; nil: it does not
	next      *Engine
}

func (g *generation) init(c Config) {
	g.view, g.told = c.View, make(map[Member]bool)
	if c.Waiting != 0 {
		g.candidacy = &candidacy{
			self: Member{c.Rank, c.Waiting}, waiting: make(map[int]uint64), inJob: make(map[Member]bool),
			done: make(chan struct{}),
		}
	}
}

// departure is a member that has left, and the first view without it.
type departure struct {
	Member
	view uint64
}

// InstallMembers takes in a view, as [Engine.Install] does, with the processes that wait
// to be admitted. Members are in order of rank.
func (e *Engine) InstallMembers(view uint64, members []Member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := &e.generation
	if view <= g.view {
		return // the generation was derived with it
	}
	g.install(view, members, e.config)
	switch {
	case g.candidacy != nil:
		e.checkCandidacy()
		if g.next == nil {
			e.tellWaiting()
		}
	case e.err == nil:
		e.install(view, ranksUpTo(members, e.config.View))
		e.tellNewcomers()
	}
	if g.next != nil {
		g.next.InstallMembers(view, members)
	}
}

// install notes the members of a view, and those that have left.
func (g *generation) install(view uint64, members []Member, c Config) {
	if g.members == nil && g.candidacy == nil {
		for _, r := range everyRank(c.Size) {
			g.members = append(g.members, Member{r, c.View})
		}
	}
	for _, m := range g.members {
		if now, ok := memberAt(members, m.Rank); !ok || now != m {
			g.departed = append(g.departed, departure{m, view})
			delete(g.told, m)
		}
	}
	g.view, g.members = view, members
}

// memberAt returns the member of a rank.
func memberAt(members []Member, rank int) (Member, bool) {
	i, ok := slices.BinarySearchFunc(members, rank, func(m Member, r int) int { return cmp.Compare(m.Rank, r) })
	if !ok {
		return Member{}, false
	}
	return members[i], true
}

// ranksUpTo returns the ranks of the members that came up to a view.
func ranksUpTo(members []Member, view uint64) (ranks []int) {
	for _, m := range members {
		if m.Incarnation <= view {
			ranks = append(ranks, m.Rank)
		}
	}
	return ranks
}

// newcomers returns the ranks of the members that came after a view.
func newcomers(members []Member, view uint64) (ranks []int) {
	for _, m := range members {
		if m.Incarnation > view {
			ranks = append(ranks, m.Rank)
		}
	}
	return ranks
}

// membersIn returns the members of a view that is not below the first one.
func (g *generation) membersIn(view uint64) (members []Member) {
	for _, m := range g.members {
		if m.Incarnation <= view {
			members = append(members, m)
		}
	}
	for _, d := range g.departed {
		if d.Incarnation <= view && view < d.view {
			members = append(members, d.Member)
		}
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Rank, b.Rank) })
	return members
}

// deriveGeneration derives the engine of the next generation, if processes wait in the
// view of a proposal. As with Shrink, each process does when it accepts the proposal, so
// that all have the engine before any sends a message in it.
func (e *Engine) deriveGeneration(a *agreement) {
	g := &e.generation
	if a.call.local.signature.Kind != Admit || g.next != nil || e.err != nil {
		return
	}
	view := a.proposal.view
	members := g.membersIn(view)
	if newcomers(members, e.config.View) == nil {
		return
	}
	e.addGeneration(deriveContextID(e.comms.contextID, a.number), view, e.config.View, members)
	a.next = g.next
}

// addGeneration makes the engine of the next generation from its first view. Departures
// since are installed view by view, because the owners of tasks depend on the order.
func (e *Engine) addGeneration(contextID, view, before uint64, members []Member) {
	n := &Engine{comms: comms{registry: e.comms.registry, contextID: contextID}}
	c := e.config
	c.View, c.Waiting = view, 0
	c.Link = newNestedLink(e.comms.registry.link, contextID, everyRank(c.Size))
	n.start(c)
	n.mu.Lock()
	defer n.mu.Unlock()
	g := &n.generation
	g.before, g.members = before, members
	n.peers.newcomers = newcomers(members, before)
	for _, r := range ranksUpTo(members, view) {
		n.peers.of(r).upSince = n.now() // all of them run: they have accepted the proposal, or wait to be admitted
	}
	n.install(view, ranksUpTo(members, view))
	later := &e.generation
	for _, d := range later.departed {
		if d.view > view && d.view != n.peers.view {
			n.install(d.view, ranksUpTo(later.membersIn(d.view), view))
		}
		if d.view > view {
			g.departed = append(g.departed, d)
		}
	}
	if later.view > view {
		g.view, g.members = later.view, later.members
	}
	if g.view > n.peers.view {
		n.install(g.view, ranksUpTo(g.members, view))
	}
	e.generation.next = n
	e.comms.nested = append(e.comms.nested, n)
	e.comms.registry.add(n)
}

// beginGeneration records that the next generation is agreed on: newcomers get a notice of it.
func (e *Engine) beginGeneration() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.generation.begun = true
	e.tellNewcomers()
}

// tellNewcomers tells each member that was not in the generation before of this one, once
// and before any other message of it: the ones that it has admitted, and the ones that
// wait.
func (e *Engine) tellNewcomers() {
	g := &e.generation
	if !g.begun || g.next != nil {
		return
	}
	notice := generationNotice{what: generationBegun, view: e.config.View, before: g.before}
	for _, m := range g.members {
		if m.Incarnation <= g.before || m.Rank == e.config.Rank || g.told[m] {
			continue
		}
		if notice.members == nil {
			notice.members = g.membersIn(e.config.View)
		}
		g.told[m] = true
		head, body := notice.bytes()
		e.sender.enqueue(outMsg{m.Rank, head, body})
	}
}

// DismissWaiting tells the processes that wait that the job is over.
func (e *Engine) DismissWaiting() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.generation.members {
		if m.Incarnation > e.config.View {
			notice := generationNotice{what: jobOver, view: e.config.View}
			head, body := notice.bytes()
			e.sender.enqueue(outMsg{m.Rank, head, body})
		}
	}
}

// Retire ends an engine that two generations have followed: all processes have come to the
// call that began the latter, so none needs the one before the former.
func (e *Engine) Retire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.stop(ErrAdmitted)
	for _, n := range e.comms.nested {
		if n != e.generation.next {
			n.End(ErrAdmitted)
		}
	}
}
