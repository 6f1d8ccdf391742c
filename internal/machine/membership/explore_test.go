package membership

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// The explorer takes a small group through all that can happen to it, in any
// order, within bounds: frames are delivered in any order or never, members
// crash, suspect each other rightly or wrongly, send messages, and their clocks
// run on to their next deadlines. A frame that is never delivered is lost, so
// loss needs no step of its own. States that were seen are not gone into again.

// bounds say how much may happen in one run.
type bounds struct {
	members                                  int
	observers                                []protocol.Rank
	roles                                    int  // how often members ask for another role
	tree                                     bool // not flat
	pings                                    bool // attempts are abandoned before anything is sent again
	crashes, suspicions, sends, ticks, joins int
	arbiter                                  bool // there is one; it is as slow as any frame, and may never answer
	unanswered, repeated                     int  // how often a call to the arbiter fails, and an answer comes again
	trusts, leaves                           int
	mistaken                                 bool // answers of the arbiter count for any view: a bug
	// states ends the search when so many were seen; 0: all are.
	states int
	// deep looks along random paths first rather than through all in order. What
	// it sees first is far from the start, which matters if states bounds it.
	deep bool
}

// world is one state of a group. Worlds share members that are the same.
type world struct {
	members []*citizen
	net     []parcel // nothing twice
	left    bounds   // what may still happen
	arbiter judge
	checker *checker
}

// citizen is a member in a world. It is never changed, only replaced.
type citizen struct {
	self      Member
	m         *Machine
	log       *testLog
	dead      bool
	now       protocol.Time
	installed int
	key       uint64 // of its state
}

// parcel is a frame, or a message, under way.
type parcel struct {
	from, to int
	frame    string
	datum    datum
	claim    *Claim // to the arbiter, or its answer
	judged   bool
	granted  bool
	key      uint64
}

// judge is an arbiter: it stores the highest view that it has granted, and to which side.
type judge struct {
	view uint64
	side string
}

// grant grants the view of a claim, or does not.
func (j *judge) grant(c *Claim) bool {
	if side := sideText(c.Side); c.View > j.view {
		j.view, j.side = c.View, side
	} else if c.View < j.view || side != j.side {
		return false
	}
	return true
}

// sideText names the members of a side.
func sideText(side []Member) string {
	var b strings.Builder
	for _, m := range side {
		b.WriteString(who(m) + " ")
	}
	return b.String()
}

// explorer goes through worlds.
type explorer struct {
	seed        maphash.Seed
	rng         *rand.Rand
	seen        map[uint64]struct{}
	limit       int
	deep        bool
	path        []step
	transitions int
	depth       int
	violation   error
	trail       []string
}

func explore(b bounds, configure func(*Config)) *explorer {
	e := &explorer{
		seed: maphash.MakeSeed(), rng: rand.New(rand.NewPCG(1, 1)), seen: map[uint64]struct{}{},
		limit: b.states, deep: b.deep,
	}
	w := &world{left: b, checker: newChecker()}
	v := firstView(b.members)
	if len(b.observers)+b.roles > 0 {
		v = withObservers(v, b.observers...)
	}
	w.checker.views[1] = v
	for _, self := range v.Members.All() {
		l := newTestLog(*self, v)
		c := Config{Self: *self, View: v, Log: l, StatusInterval: 1 << 50, Arbiter: b.arbiter}
		if b.tree {
			c.FlatThreshold, c.relays = -1, []int{2}
		}
		if !b.pings {
			c.AttemptTimeout = second
		}
		w.checker.withArbiter = b.arbiter
		if configure != nil {
			configure(&c)
			// To see what follows from it.
			w.checker.isQuorum, w.checker.withArbiter = func(*View, set) bool { return true }, false
		}
		m, err := New(c)
		if err != nil {
			panic(err)
		}
		m.Next(1) // it sees the clock
		w.members = append(w.members, &citizen{self: *self, m: m, log: l, now: 1})
	}
	for _, c := range w.members {
		c.key = e.keyOf(c)
	}
	e.visit(w)
	return e
}

func (e *explorer) keyOf(c *citizen) uint64 {
	if c.dead {
		return 1
	}
	return fingerprint(e.seed, c.m)*31 + fingerprint(e.seed, c.log)
}

// key is a number for a world's state.
func (w *world) key(seed maphash.Seed) uint64 {
	var k uint64
	for _, c := range w.members {
		k = k*0x9e3779b97f4a7c15 + c.key
	}
	for _, p := range w.net {
		k += p.key * 0xbf58476d1ce4e5b9
	}
	l := &w.left
	for _, spent := range []int{
		l.crashes, l.suspicions, l.sends, l.ticks, l.joins, l.roles, l.unanswered, l.repeated, l.trusts, l.leaves,
	} {
		k = k*31 + uint64(spent)
	}
	return k*0x94d049bb133111eb ^ w.arbiter.view<<32 ^ maphash.String(seed, w.arbiter.side)
}

// visit goes into a world and all that follow from it.
func (e *explorer) visit(w *world) {
	if e.violation != nil || e.limit > 0 && len(e.seen) >= e.limit {
		return
	}
	key := w.key(e.seed)
	if _, ok := e.seen[key]; ok {
		return
	}
	e.seen[key] = struct{}{}
	e.depth = max(e.depth, len(e.path))
	steps := w.steps()
	if e.deep {
		e.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	for _, s := range steps {
		next, err := e.take(w, s)
		e.transitions++
		e.path = append(e.path, s)
		if err != nil && e.violation == nil {
			e.violation = err
			for _, s := range e.path {
				e.trail = append(e.trail, s.String())
			}
		}
		e.visit(next)
		e.path = e.path[:len(e.path)-1]
	}
}

// step is one thing that can happen.
type step struct {
	what   string
	who, x int
	parcel parcel
}

func (s step) String() string {
	switch {
	case s.what != "deliver":
		return fmt.Sprintf("%s %d %d", s.what, s.who, s.x)
	case s.parcel.claim != nil && !s.parcel.judged:
		return fmt.Sprintf("the arbiter gets view %d for %sfrom %d", s.parcel.claim.View, sideText(s.parcel.claim.Side),
			s.who)
	case s.parcel.claim != nil:
		return fmt.Sprintf("%d learns that view %d for %sis granted: %t", s.who, s.parcel.claim.View,
			sideText(s.parcel.claim.Side), s.parcel.granted)
	case s.parcel.frame == "":
		return fmt.Sprintf("%d gets %+v from %d", s.who, s.parcel.datum, s.parcel.from)
	default:
		f, _ := parse(0, []byte(s.parcel.frame))
		return fmt.Sprintf("%d gets %v ballot %v view %d from %d", s.who, f.kind, f.ballot, f.view, s.parcel.from)
	}
}

// steps lists all that can happen in a world.
func (w *world) steps() []step {
	var steps []step
	for i, c := range w.members {
		if c.dead || c.m.done != nil {
			continue
		}
		if w.left.crashes > 0 {
			steps = append(steps, step{what: "crash", who: i})
		}
		if w.left.sends > 0 && !c.log.frozen {
			steps = append(steps, step{what: "send", who: i})
		}
		if w.left.ticks > 0 && c.m.Deadline() < 1<<50 {
			steps = append(steps, step{what: "tick", who: i})
		}
		if w.left.roles > 0 {
			steps = append(steps, step{what: "role", who: i})
		}
		if w.left.joins > 0 {
			steps = append(steps, step{what: "join", who: i})
		}
		if w.left.leaves > 0 && !c.m.leaving {
			steps = append(steps, step{what: "leave", who: i})
		}
		if w.left.unanswered > 0 && c.m.claims.asking != nil {
			steps = append(steps, step{what: "unanswered", who: i})
		}
		for j, peer := range w.members {
			known := func(x suspect) bool { return x.rank == peer.self.Rank }
			if w.left.trusts > 0 && slices.ContainsFunc(c.m.suspicions.own, known) {
				steps = append(steps, step{what: "trust", who: i, x: j})
			}
			suspected := slices.Contains(c.m.suspicions.own, suspect{peer.self.Rank, peer.self.Incarnation, 0})
			if w.left.suspicions > 0 && i != j && !suspected && c.m.view.Holds(peer.self.Rank, peer.self.Incarnation) {
				steps = append(steps, step{what: "suspect", who: i, x: j})
			}
		}
	}
	for _, p := range w.net {
		steps = append(steps, step{what: "deliver", who: p.to, parcel: p})
		if p.judged && w.left.repeated > 0 {
			steps = append(steps, step{what: "deliver", who: p.to, x: 1, parcel: p})
		}
	}
	return steps
}

// take makes the world that follows from a step.
func (e *explorer) take(w *world, s step) (*world, error) {
	next := &world{
		members: slices.Clone(w.members), net: slices.Clone(w.net), left: w.left, checker: w.checker, arbiter: w.arbiter,
	}
	c := deepCopy(w.members[s.who])
	next.members[s.who] = c
	switch s.what {
	case "crash":
		next.left.crashes--
		c.dead = true
		next.net = slices.DeleteFunc(next.net, func(p parcel) bool {
			return p.to == s.who && (p.claim == nil || p.judged) // a claim is with the arbiter already
		})
		c.key = e.keyOf(c)
		return next, nil
	case "send":
		next.left.sends--
		c.log.send()
	case "tick":
		next.left.ticks--
		c.now = max(c.now, c.m.Deadline())
		c.log.fetch()
	case "role":
		next.left.roles--
		_ = c.m.SetObserver(c.now, !c.m.wanted.observer) // or it is the last voter
	case "join":
		next.left.joins--
		c.m.Join(c.now, 1, Member{
			Identity: "joiner", Nonce: 2, Version: c.m.view.Version,
			Observer: c.m.view.Members.observers() > 0,
		}, false)
	case "leave":
		next.left.leaves--
		next.checker = next.checker.leaves(c.self)
		c.m.Leave(c.now)
	case "unanswered":
		next.left.unanswered--
		c.m.Judge(c.now, *c.m.claims.asking, Unanswered)
	case "trust":
		next.left.trusts--
		peer := w.members[s.x].self
		c.m.Trust(c.now, peer.Rank, peer.Incarnation)
	case "suspect":
		next.left.suspicions--
		peer := w.members[s.x].self
		c.m.Suspect(c.now, peer.Rank, peer.Incarnation)
	default:
		if s.x == 0 {
			next.net = slices.DeleteFunc(next.net, func(p parcel) bool { return p.key == s.parcel.key })
		} else {
			next.left.repeated--
		}
		if a := s.parcel; a.claim != nil && !a.judged { // it is the arbiter's turn, and nobody else's
			e.post(next, parcel{to: a.to, claim: a.claim, judged: true, granted: next.arbiter.grant(a.claim)})
			next.members[s.who] = w.members[s.who]
			return next, nil
		} else if a.claim != nil {
			verdict := Refused
			if a.granted {
				verdict = Granted
			}
			about := *a.claim
			if w.left.mistaken {
				about = Claim{c.m.view.Number + 1, []Member{c.self}}
			}
			c.m.Judge(c.now, about, verdict)
		} else if s.parcel.frame == "" {
			c.log.receive(protocol.Rank(s.parcel.from), s.parcel.datum)
		} else if err := c.m.Receive(c.now, protocol.Rank(s.parcel.from), []byte(s.parcel.frame)); err != nil {
			return next, err
		}
	}
	err := e.settle(next, s.who, c)
	c.key = e.keyOf(c)
	return next, err
}

// settle carries out what a member wants to do, and checks what it has done.
func (e *explorer) settle(w *world, i int, c *citizen) error {
	c.m.LogFlushed(c.now)
	for {
		to, b, ok := c.m.Next(c.now)
		if !ok {
			break
		}
		e.post(w, parcel{from: i, to: int(to), frame: string(b)})
	}
	if claim, ok := c.m.NextClaim(); ok {
		e.post(w, parcel{from: i, to: i, claim: &claim})
	}
	for _, o := range c.log.out {
		e.post(w, parcel{from: i, to: int(o.to), datum: o.datum})
	}
	c.log.out = nil
	c.m.Answers()
	for {
		v, ok := c.log.installed()
		if !ok {
			return nil
		}
		fresh := *w.checker
		fresh.arbiter = w.arbiter
		fresh.views, fresh.cuts = maps.Clone(fresh.views), maps.Clone(fresh.cuts)
		w.checker = &fresh
		digest := c.log.record[c.installed]
		c.installed++
		if err := fresh.installed(c.self, v, digest); err != nil {
			return err
		}
	}
}

// post puts a parcel under way, unless the same already is, or nobody is there.
func (e *explorer) post(w *world, p parcel) {
	if p.to >= len(w.members) || w.members[p.to].dead {
		return
	}
	p.key = fingerprint(e.seed, &p)
	for _, o := range w.net {
		if o.key == p.key {
			return
		}
	}
	w.net = append(w.net, p)
}

func (e *explorer) report(t *testing.T, b bounds) {
	t.Logf("%+v: %d states, %d transitions, depth %d", b, len(e.seen), e.transitions, e.depth)
	if e.violation != nil {
		t.Errorf("%v after\n  %s", e.violation, strings.Join(e.trail, "\n  "))
	}
}

func ranked(ranks ...protocol.Rank) []protocol.Rank { return ranks }

func TestExplore(t *testing.T) {
	all := []bounds{
		{members: 3, suspicions: 1},
		{members: 3, crashes: 1, suspicions: 1, sends: 1},
		{members: 3, crashes: 1, suspicions: 2, sends: 1, ticks: 2, states: 12_000, deep: true},
		{members: 3, suspicions: 2, sends: 2, ticks: 3, joins: 1, states: 10_000, deep: true},
		{members: 4, crashes: 1, suspicions: 2, sends: 1, ticks: 2, states: 10_000, deep: true},
		{members: 4, tree: true, crashes: 1, suspicions: 2, sends: 1, ticks: 2, states: 10_000, deep: true},
		{members: 5, crashes: 2, suspicions: 3, sends: 1, ticks: 2, states: 10_000, deep: true},
		{members: 5, tree: true, crashes: 2, suspicions: 3, sends: 1, ticks: 2, states: 10_000, deep: true},
		{members: 3, pings: true, crashes: 1, suspicions: 2, sends: 1, ticks: 4, states: 10_000, deep: true},
		{members: 4, tree: true, pings: true, suspicions: 2, sends: 1, ticks: 4, states: 10_000, deep: true},
		{members: 3, observers: ranked(0), suspicions: 1},
		{members: 3, observers: ranked(1, 2), crashes: 1, suspicions: 1, sends: 1},
		{members: 4, observers: ranked(0, 2), crashes: 1, suspicions: 3, sends: 1, ticks: 2, states: 10_000, deep: true},
		{members: 5, observers: ranked(1, 3), crashes: 2, suspicions: 4, sends: 1, ticks: 2, states: 10_000, deep: true},
		{
			members: 5, observers: ranked(0, 4), tree: true, crashes: 2, suspicions: 3, sends: 1, ticks: 2,
			states: 10_000, deep: true,
		},
		{members: 3, observers: ranked(2), suspicions: 2, sends: 1, ticks: 4, roles: 2, joins: 1, states: 10_000, deep: true},
		{members: 4, observers: ranked(3), suspicions: 2, ticks: 4, roles: 3, states: 10_000, deep: true},
	}
	for _, b := range all {
		switch {
		case testutil.Full.On():
			b.states *= 50
		case testutil.RaceEnabled || testing.Short():
			b.states = 2000
		}
		e := explore(b, nil)
		e.report(t, b)
	}
}

// A search that finds nothing is worth something only if it can find something:
// with the rule of majorities broken, two members alone decide on two views.
func TestExplorerFindsABrokenQuorum(t *testing.T) {
	b := bounds{members: 3, suspicions: 4, states: 200_000, deep: true}
	e := explore(b, func(c *Config) { c.isQuorum = func(_ *View, s set) bool { return s.count() > 0 } })
	if e.violation == nil || !strings.Contains(e.violation.Error(), "agreement") {
		t.Fatalf("%d states, and no two views of one number: %v", len(e.seen), e.violation)
	}
	t.Logf("after %d states: %v\n  %s", len(e.seen), e.violation, strings.Join(e.trail, "\n  "))
}
