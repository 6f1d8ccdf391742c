package membership

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// network drives machines through a simulated network with a clock of its own:
// a run takes no real time, and is the same for the same seed.
type network struct {
	t       testing.TB
	rng     *rand.Rand
	now     protocol.Time
	events  events
	order   int
	starts  uint64
	hosts   []*host
	names   map[string]*host // by address
	checker *checker
	config  func(*Config)

	latency, jitter time.Duration
	drop            float64
	blocked         func(from, to *host) bool // nil: nobody is
	detect          time.Duration             // how often detectors look; 0: never
	rejoin          bool                      // who is evicted comes back
	frames          [Kinds]int
	spy             func(from *host, kind Kind)                      // sees every frame that is sent
	strange         func(to *host, from protocol.Rank, frame []byte) // sees every frame before it is received
	// gets the answers to candidates; nil: the hosts get them
	answers   func(Answer)
	evictions int
	judged    int  // see checkInvariants
	disks     bool // processes are restored from what they have saved
	strict    bool // nobody is forsaken in a view most of whose voters live
	verbose   bool
	log       []string
	failure   error
}

// host is a process: a machine, its log, and what the network knows of it.
type host struct {
	id   int
	self Member
	m    *Machine // nil: not in the group yet
	log  *testLog
	dead bool
	left bool // wants to, or has
	// refused: a live process has its identity. It stays out.
	refused   bool
	woken     protocol.Time
	sees      map[protocol.Rank]uint64 // whom its detector suspects
	views     []View
	asking    bool // for its place
	token     uint64
	lonely    protocol.Time // when it last had a quorum
	reply     *host         // whom it has just heard from
	held      []func()      // what has happened to it while it is stopped; nil: it is not
	disk      []byte        // what it has saved
	decisions Decisions     // that have led to its first view
	next      uint64        // likewise: the nonce of its next start, until that is a member
	voter     *voterLog     // it is a restarted voter that was restored; nil: it is not
}

// event is something that happens at a time.
type event struct {
	at    protocol.Time
	order int
	do    func()
}

// events is a heap. It is one of its own because package container/heap makes an
// allocation of every event, and a run is little but events.
type events []event

func (e events) before(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}

func (e *events) push(x event) {
	*e = append(*e, x)
	h := *e
	for i := len(h) - 1; i > 0 && h.before(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (e *events) pop() event {
	h := *e
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], event{}
	h = h[:last]
	for i := 0; 2*i+1 < last; {
		child := 2*i + 1
		if child+1 < last && h.before(child+1, child) {
			child++
		}
		if !h.before(child, i) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	*e = h
	return first
}

func newNetwork(t testing.TB, size int, seed uint64, configure func(*Config)) *network {
	return newNetworkOf(t, firstView(size), seed, configure)
}

func newNetworkOf(t testing.TB, v View, seed uint64, configure func(*Config)) *network {
	n := &network{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: 1, checker: newChecker(), config: configure,
		names:   map[string]*host{},
		latency: 100 * time.Microsecond, jitter: 100 * time.Microsecond,
	}
	for _, m := range v.Members.All() {
		n.start(n.addHost(*m), v)
	}
	n.checker.views[v.Number] = v
	return n
}

func firstView(size int) View {
	var members []Member
	for r := range protocol.Rank(size) {
		members = append(members, Member{
			Rank: r, Identity: fmt.Sprint("p", r), Address: fmt.Sprint("host", r),
			Incarnation: 1,
		})
	}
	return View{Number: 1, Slots: protocol.Rank(size), Members: MembersOf(members...)}
}

// withObservers returns a view in which some members are observers.
func withObservers(v View, observers ...protocol.Rank) View {
	v.Version = ObserverVersion
	for _, m := range v.Members.All() {
		m := *m
		m.Version, m.Observer = ObserverVersion, slices.Contains(observers, m.Rank)
		v.Members = v.Members.change(nil, m)
	}
	return v
}

func (n *network) addHost(self Member) *host {
	h := &host{id: len(n.hosts), self: self}
	n.hosts = append(n.hosts, h)
	n.names[self.Address] = h
	return h
}

// start gives a host its machine.
func (n *network) start(h *host, v View) {
	i := v.identity(h.self.Identity)
	h.self = *v.Members.At(i)
	h.log = newTestLog(h.self, v)
	h.sees = map[protocol.Rank]uint64{}
	h.views = append(h.views[:0:0], v)
	h.woken, h.asking, h.lonely, h.voter = 0, false, n.now, nil
	c := Config{Self: h.self, View: v, Log: h.log, Durable: true, Decisions: h.decisions}
	h.decisions = Decisions{}
	if n.config != nil {
		n.config(&c)
	}
	m, err := New(c)
	if err != nil {
		n.t.Fatal(err)
	}
	h.m = m
	n.save(h)
	h.next = 0
	n.pump(h)
	n.watch(h, m)
}

func (n *network) after(d time.Duration, do func()) {
	n.order++
	n.events.push(event{n.now + protocol.Time(d), n.order, do})
}

func (n *network) logf(format string, args ...any) {
	if n.verbose {
		n.log = append(n.log, fmt.Sprintf("%9.3f ms  ", float64(n.now)/1e6)+fmt.Sprintf(format, args...))
	}
}

func (n *network) fail(err error) {
	if err != nil && n.failure == nil {
		n.failure = err
		n.logf("FAILURE %v", err)
	}
}

// live reports whether a host runs a machine that is in the group.
func (h *host) live() bool { return !h.dead && h.m != nil && h.m.done == nil }

// is reports whether a member is this very process, maybe before it knows.
func (h *host) is(m *Member) bool {
	return m.Identity == h.self.Identity && (m.Incarnation == h.self.Incarnation || h.m == nil && m.Nonce == h.self.Nonce)
}

// host finds whom a rank stands for. An answer to one who is no longer in the
// view goes where the question came from, as on a connection.
func (n *network) find(by *host, r protocol.Rank) *host {
	if b := by.reply; b != nil && b.self.Rank == r && !by.m.view.Holds(r, b.self.Incarnation) {
		return b
	}
	m, ok := by.m.view.Member(r)
	for i := len(by.views) - 1; i >= 0 && !ok; i-- {
		m, ok = by.views[i].Member(r) // connections outlive a view
	}
	if !ok {
		return nil
	}
	return n.names[m.Address] // maybe a later start
}

// pump carries out all a host wants to do now.
func (n *network) pump(h *host) {
	if h.dead || h.m == nil {
		return
	}
	h.m.LogFlushed(n.now)
	for {
		to, b, ok := h.m.Next(n.now)
		if saved := n.save(h); !ok && !saved {
			break
		}
		if ok {
			n.carry(h, to, b)
		}
	}
	for _, o := range h.log.out {
		n.carryDatum(h, o)
	}
	h.log.out = h.log.out[:0]
	n.checkInvariants(h)
	n.collect(h)
	if h.m == nil {
		return // it starts anew
	}
	if d := h.m.Deadline(); d != protocol.Never && (h.woken <= n.now || d < h.woken) {
		if d <= n.now {
			n.fail(fmt.Errorf("%s: deadline %d is not later than %d, and there is nothing to do", who(h.self), d, n.now))
		}
		h.woken = max(d, n.now+1)
		m := h.m
		n.after(time.Duration(h.woken-n.now), func() { h.unlessStopped(func() { n.wake(h, m) }) })
	}
}

// save saves what a host has to.
func (n *network) save(h *host) bool {
	state, _, ok := h.m.Unsaved()
	if ok {
		h.disk = state
		h.m.Saved(n.now)
	}
	return ok
}

func (n *network) wake(h *host, m *Machine) {
	if h.m == m {
		h.reply = nil
		n.pump(h)
	}
}

// collect takes a host's results and checks them.
func (n *network) collect(h *host) {
	if h.voter != nil {
		n.collectVoter(h)
		return
	}
	for {
		v, ok := h.log.installed()
		if !ok {
			break
		}
		n.logf("%s installs %v, delivered %q", who(h.self), &v, h.log.record[len(h.views)-1])
		n.fail(n.checker.installed(h.self, v, h.log.record[len(h.views)-1]))
		h.views = append(h.views, v)
	}
	for {
		a, ok := h.m.Answers()
		if !ok {
			break
		}
		if n.answers != nil {
			n.answers(a)
			continue
		}
		n.after(n.delay(), func() { n.answer(a) })
	}
	if h.m.done != nil && n.rejoin && !h.left {
		n.evictions++
		n.logf("%s: %v", who(h.self), h.m.done)
		n.restart(h)
	}
}

func (n *network) delay() time.Duration {
	return n.latency + time.Duration(n.rng.Int64N(int64(n.jitter)+1))
}

func (n *network) lost(from, to *host) bool {
	return n.blocked != nil && n.blocked(from, to) || n.drop > 0 && n.rng.Float64() < n.drop
}

func (n *network) carry(h *host, to protocol.Rank, b []byte) {
	kind := Kind(b[0])
	n.frames[kind]++
	peer := n.find(h, to)
	if peer == h {
		n.fail(fmt.Errorf("%s sends itself a %v", who(h.self), kind))
	}
	if peer == nil {
		n.unread(h, b) // that process is no more
		return
	}
	if n.spy != nil {
		n.spy(h, kind)
	}
	if n.verbose {
		f, _ := parse(h.self.Rank, b)
		n.logf("%s -> %s %v ballot %v", who(h.self), who(peer.self), f.kind, f.ballot)
	}
	if h.dead || n.lost(h, peer) {
		n.unread(h, b)
		return
	}
	b, from, incarnation := bytes.Clone(b), h.self.Rank, peer.self.Incarnation
	n.after(n.delay(), func() {
		peer.unlessStopped(func() {
			if peer.dead || peer.m == nil || peer.self.Incarnation != incarnation || n.blocked != nil && n.blocked(h, peer) {
				n.unread(h, b)
				return
			}
			peer.reply = h
			if n.strange != nil {
				n.strange(peer, from, b)
			}
			if err := peer.m.Receive(n.now, from, b); err != nil {
				n.fail(err)
			}
			n.pump(peer)
		})
	})
}

// stop stops processes as a signal does: what comes for them waits, and time goes on.
func (n *network) stop(hosts ...int) {
	for _, h := range hosts {
		n.hosts[h].held = []func(){func() {}}
	}
}

// resume lets a process go on with what has come for it.
func (n *network) resume(hosts ...int) {
	for _, h := range hosts {
		held := n.hosts[h].held
		n.hosts[h].held = nil
		for _, do := range held {
			do()
		}
	}
}

// unlessStopped runs what happens to a host now, or when it is no longer stopped.
func (h *host) unlessStopped(do func()) {
	if h.held != nil {
		h.held = append(h.held, do)
		return
	}
	do()
}

// unread looks at a frame that nobody gets: it must make sense all the same.
func (n *network) unread(h *host, b []byte) {
	if _, err := parse(h.self.Rank, b); err != nil {
		n.fail(fmt.Errorf("%s sends what it would refuse: %w", who(h.self), err))
	}
}

func (n *network) carryDatum(h *host, o outgoing) {
	peer := n.find(h, o.to)
	if peer == nil || h.dead || n.lost(h, peer) {
		return
	}
	from, incarnation := h.self.Rank, peer.self.Incarnation
	n.after(n.delay(), func() {
		if !peer.dead && peer.m != nil && peer.self.Incarnation == incarnation {
			peer.log.receive(from, o.datum)
			peer.reply = h
			n.pump(peer)
		}
	})
}

// watch is a host's detector, and what makes its log ask again.
func (n *network) watch(h *host, m *Machine) {
	again := 20 * time.Millisecond
	if n.detect > 0 {
		again = n.detect
	}
	n.after(time.Duration(n.rng.Int64N(int64(again)))+1, func() { h.unlessStopped(func() { n.watchOnce(h, m) }) })
}

func (n *network) watchOnce(h *host, m *Machine) {
	if h.dead || h.m != m || m.done != nil {
		return
	}
	if n.detect > 0 {
		n.look(h)
	}
	if n.rejoin && !n.disks && n.forsaken(h) {
		if v := h.m.view; n.strict && countsMost(&v, n.livingIn(&v)) {
			n.fail(fmt.Errorf("%s has no quorum in %v, where most voters live", who(h.self), &v))
		}
		if h.left {
			n.kill(h.id) // who wanted to leave does not come back
		} else {
			n.restart(h)
		}
		return
	}
	if !h.log.Flushed() {
		h.log.fetch()
	}
	h.reply = nil
	n.pump(h)
	n.watch(h, m)
}

// livingIn returns the members of a view that live in it.
func (n *network) livingIn(v *View) set {
	living := newSet(v.Members.Len())
	for _, h := range n.hosts {
		if i := v.identity(h.self.Identity); i >= 0 && h.live() && h.m.view.Number == v.Number {
			living.add(i)
		}
	}
	return living
}

// forsaken reports whether a host has had no quorum for long. All whom it knows
// may be gone for good, with nobody left to tell it: it is for its driver to ask
// at the others anew, by addresses from elsewhere.
func (n *network) forsaken(h *host) bool {
	if s, _ := h.m.State(); s != NoQuorum {
		h.lonely = n.now
	}
	return n.now > h.lonely+10*second
}

// look tells a host whom it can reach.
func (n *network) look(h *host) {
	for _, m := range h.m.view.Members.All() {
		if m.Rank == h.self.Rank {
			continue
		}
		peer := n.names[m.Address]
		cut := peer.dead || !peer.is(m) || peer.m != nil && peer.m.done != nil ||
			n.blocked != nil && (n.blocked(h, peer) || n.blocked(peer, h))
		seen, suspected := h.sees[m.Rank]
		switch {
		case cut && (!suspected || seen != m.Incarnation):
			n.suspect(h, *m)
		case !cut && suspected:
			delete(h.sees, m.Rank)
			h.m.Trust(n.now, m.Rank, m.Incarnation)
		}
	}
}

func (n *network) suspect(h *host, m Member) {
	if n.verbose {
		n.logf("%s suspects %s", who(h.self), who(m))
	}
	h.sees[m.Rank] = m.Incarnation
	h.m.Suspect(n.now, m.Rank, m.Incarnation)
}

// kill ends a process.
func (n *network) kill(ranks ...int) {
	for _, r := range ranks {
		n.logf("%s dies", who(n.hosts[r].self))
		n.hosts[r].dead = true
	}
}

// suspectAll has everybody suspect a rank at once.
func (n *network) suspectAll(ranks ...protocol.Rank) {
	for _, h := range n.hosts {
		for _, r := range ranks {
			if m, ok := h.memberIn(r); ok && h.live() && h.self.Rank != r {
				n.suspect(h, m)
			}
		}
		n.pump(h)
	}
}

func (h *host) memberIn(r protocol.Rank) (Member, bool) {
	if h.m == nil {
		return Member{}, false
	}
	return h.m.view.Member(r)
}

// leave has a host leave.
func (n *network) leave(h *host) {
	n.logf("%s leaves", who(h.self))
	h.left, h.reply = true, nil
	n.checker.leavers[who(h.self)] = true
	h.m.Leave(n.now)
	n.pump(h)
}

// restart brings a process back as a new incarnation, which asks to join until it is in.
func (n *network) restart(h *host) {
	h.dead, h.m, h.voter, h.disk, h.next = false, nil, nil, nil, 0
	h.self.Incarnation, h.self.Nonce = 0, n.nonce()
	n.logf("%s starts", who(h.self))
	n.requestJoin(h)
}

// nonce is another number each time.
func (n *network) nonce() uint64 {
	n.starts++
	return n.starts
}

// join adds a new process.
func (n *network) join(identity, domain string) *host {
	h := n.addHost(Member{
		Rank: protocol.NoRank, Identity: identity, Domain: domain, Address: "at " + identity,
		Nonce: n.nonce(), Version: n.checker.views[1].Version,
	})
	n.requestJoin(h)
	return h
}

// copyOf adds a second process with the identity of another, as an operator does by
// mistake.
func (n *network) copyOf(h *host) *host {
	c := n.addHost(Member{
		Rank: protocol.NoRank, Identity: h.self.Identity, Address: fmt.Sprint("copy", len(n.hosts)),
		Nonce: n.nonce(), Version: h.self.Version, Observer: h.self.Observer,
	})
	n.logf("%s is started again elsewhere", who(h.self))
	n.requestJoin(c)
	return c
}

// requestJoin asks any live member, and again until there is an answer.
func (n *network) requestJoin(h *host) {
	nonce := h.self.Nonce
	h.asking = true
	n.after(n.delay(), func() {
		if h.dead || h.m != nil || h.self.Nonce != nonce {
			return
		}
		var doors []*host
		for _, d := range n.hosts {
			if d.live() && (n.blocked == nil || !n.blocked(d, h) && !n.blocked(h, d)) {
				doors = append(doors, d)
			}
		}
		if len(doors) > 0 {
			door := doors[n.rng.IntN(len(doors))]
			h.token++
			n.logf("%s asks %s to join", who(h.self), who(door.self))
			door.reply = nil
			door.m.Join(n.now, uint64(h.id)<<32|h.token, h.self, false)
			n.pump(door)
		}
		n.after(500*time.Millisecond, func() { n.requestJoinAgain(h, nonce) })
	})
}

func (n *network) requestJoinAgain(h *host, nonce uint64) {
	if h.asking && h.self.Nonce == nonce {
		n.requestJoin(h)
	}
}

func (n *network) answer(a Answer) {
	h := n.hosts[a.Token>>32]
	if h.dead || !h.asking {
		return
	}
	if a.Err != nil {
		n.logf("%s is refused: %v", who(h.self), a.Err)
		switch {
		case errors.As(a.Err, new(*InUseError)):
			h.dead, h.refused = true, true
		case errors.Is(a.Err, ErrLastVoter):
			h.self.Observer = false
		}
		return
	}
	m, _ := a.View.Member(a.Rank)
	if m.Identity != h.self.Identity {
		n.fail(fmt.Errorf("%s was welcomed as %s", who(h.self), who(m)))
		return
	}
	if m.Nonce == h.self.Nonce {
		n.logf("%s is welcomed to %v as rank %d", who(h.self), &a.View, a.Rank)
		h.decisions = a.Decisions
		n.start(h, a.View)
	}
}

// run lets time pass until a condition holds, or for as long as given.
func (n *network) run(d time.Duration, until func() bool) bool {
	end := n.now + protocol.Time(d)
	for len(n.events) > 0 && n.failure == nil {
		if until != nil && until() {
			return true
		}
		if n.events[0].at > end {
			n.now = end
			break
		}
		e := n.events.pop()
		n.now = e.at
		e.do()
	}
	return until != nil && until()
}

// agreed reports whether all who live are in one view, and it holds just them.
func (n *network) agreed() bool {
	var first *View
	count := 0
	for _, h := range n.hosts {
		if h.dead || h.left && (h.m == nil || h.m.done != nil) {
			continue
		}
		if !h.live() {
			return false
		}
		if first == nil {
			first = &h.m.view
		}
		stays := h.m.electorate.last(h.m.self) // although it wants to leave
		if h.left && !stays || h.m.view.Number != first.Number || h.m.acceptor.frozen {
			return false
		}
		count++
	}
	return first != nil && first.Members.Len() == count
}

// settle runs until all agree; it fails the test if they do not.
func (n *network) settle() *View {
	n.t.Helper()
	if !n.run(2*time.Minute, n.agreed) {
		n.t.Fatalf("no agreement: %v\n%s", n.failure, n.situation())
	}
	for _, h := range n.hosts {
		if h.live() {
			return &h.m.view
		}
	}
	return nil
}

// situation describes all hosts.
func (n *network) situation() string {
	var b strings.Builder
	for _, h := range n.hosts {
		fmt.Fprintf(&b, "%s dead %v leaves %v", who(h.self), h.dead, h.left)
		if h.m != nil {
			state, _ := h.m.State()
			r := &h.m.acceptor
			fmt.Fprintf(&b, " %v %v promised %v accepted %v holds %v frozen %v proposes %v flushed %v sees %v", state, &h.m.view,
				r.promised, r.accepted, r.holds, r.frozen, h.m.proposer != nil, h.log.Flushed(), h.sees)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ranks returns a view's.
func ranks(v *View) []protocol.Rank {
	var list []protocol.Rank
	for _, m := range v.Members.All() {
		list = append(list, m.Rank)
	}
	return slices.Clip(list)
}

// identity returns the index of the member with that identity, or −1.
func (v *View) identity(identity string) int {
	if i, ok := v.named(identity); ok {
		return i
	}
	return -1
}
