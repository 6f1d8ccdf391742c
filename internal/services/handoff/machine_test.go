package handoff

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Groups of machines under random views, crashes, cuts, slow members and messages that come
// late. A process that is out of the view need not know it: it goes on as an owner until its
// lease ends. At no time do two processes work on a partition, no token names two owners, and
// in the end every partition is owned by the member of the map.

const (
	lease   Time = 1000
	handoff Time = 400
	skew    Time = 150 // members install a view within less than a fifth of a lease
	delay   Time = 60  // messages take up to that
	drain   Time = 50  // work ends within that in calm groups
)

// host is a process with its machine.
type host struct {
	*Machine
	id      int
	self    Process
	view    int          // index of the view that it has installed; -1: none
	next    Time         // when it installs the next one
	ended   bool         // it has crashed
	slow    Time         // it does nothing until then
	work    map[int]Item // partitions that it works on
	drains  map[int]Time // when the work of a draining partition ends
	checked Time         // when it last asked for the majority
	inbox   []parcel
}

// parcel is a message on its way.
type parcel struct {
	at Time
	Message
}

// agreed is a view of the group.
type agreed struct {
	number  uint64
	at      Time
	members []Member
	hosts   []*host
}

// world is a simulated group.
type world struct {
	t          testing.TB
	rng        *rand.Rand
	partitions int
	handoff    Time // shorter than a lease, or longer
	calm       bool // nothing is lost, and work ends soon
	now        Time
	all        []*host // all processes that there ever were
	views      []agreed
	tokens     map[Item]Process
	highest    map[int]uint64 // by partition
	begun      int
}

func newWorld(t testing.TB, seed uint64, partitions, size int) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), partitions: partitions, tokens: map[Item]Process{},
		highest: map[int]uint64{},
	}
	w.handoff = handoff
	if seed%2 == 0 {
		w.handoff = 2 * lease
	}
	var hosts []*host
	for id := range size {
		hosts = append(hosts, w.start(id, 1))
	}
	w.decide(hosts)
	return w
}

// start starts the process of a member: rank and ID are its number.
func (w *world) start(id int, incarnation uint64) *host {
	h := &host{
		Machine: New(Config{Partitions: w.partitions, Lease: lease, Handoff: w.handoff, Floor: w.rng.Uint64N(1 << 20)}),
		id:      id, self: Process{id, incarnation}, view: -1, work: map[int]Item{}, drains: map[int]Time{},
	}
	w.all = append(w.all, h)
	return h
}

// decide has the group agree on its next view, of these processes.
func (w *world) decide(hosts []*host) {
	v := agreed{number: uint64(len(w.views) + 1), at: w.now, hosts: hosts}
	for _, h := range hosts {
		v.members = append(v.members, Member{Process: h.self, ID: fmt.Sprint("member-", h.id), Weight: 1})
		h.next = w.now + Time(w.rng.Int64N(int64(skew)))
	}
	w.views = append(w.views, v)
}

// last is the newest view.
func (w *world) last() *agreed { return &w.views[len(w.views)-1] }

// change decides a random view: members go, with a crash or without knowing it, and others come.
func (w *world) change(size int) {
	v := w.last()
	quorum := len(v.hosts)/2 + 1
	var stay []*host
	for i, h := range v.hosts {
		if left := len(v.hosts) - i - 1; len(stay)+left >= quorum && w.rng.IntN(4) == 0 {
			h.ended = h.ended || w.rng.IntN(2) == 0
			continue
		}
		if !h.ended {
			stay = append(stay, h)
		}
	}
	if len(stay) < quorum {
		return
	}
	in := map[int]bool{}
	for _, h := range stay {
		in[h.id] = true
	}
	for id := range size {
		if !in[id] && w.rng.IntN(3) == 0 {
			stay = append(stay, w.comes(id, uint64(len(w.views)+1)))
		}
	}
	w.decide(stay)
}

// comes has a member come: a process that was out of the view and lives joins again, or another
// one starts.
func (w *world) comes(id int, incarnation uint64) *host {
	for _, h := range w.all {
		if h.id == id && !h.ended && w.rng.IntN(2) == 0 {
			h.self.Incarnation = incarnation
			return h
		}
	}
	return w.start(id, incarnation)
}

// step has one unit of time pass for all processes.
func (w *world) step() {
	w.now++
	for _, h := range w.all {
		if h.ended || w.now < h.slow {
			continue
		}
		w.install(h)
		for len(h.inbox) > 0 && h.inbox[0].at <= w.now {
			h.Receive(w.now, h.inbox[0].Message)
			h.inbox = h.inbox[1:]
		}
		for p, at := range h.drains {
			if w.now >= at {
				delete(h.drains, p)
				item := h.work[p]
				delete(h.work, p)
				h.Drained(w.now, item)
			}
		}
		w.confirm(h)
		w.carryOut(h, h.Take())
		w.tick(h)
	}
	w.check()
}

// tick has a machine act by time: when it has said that it would, and then completely.
func (w *world) tick(h *host) {
	next := h.Next()
	h.Tick(w.now)
	a := h.Take()
	if w.now < next && (a.Lapse || len(a.Stop)+len(a.Begin) > 0) {
		w.t.Fatalf("at %d: %v acts before %d: %+v", w.now, h.self, next, a)
	}
	if next := h.Next(); next <= w.now {
		w.t.Fatalf("at %d: %v has not done what is due since %d", w.now, h.self, next)
	}
	w.carryOut(h, a)
}

// install has a process install the newest view that it is in.
func (w *world) install(h *host) {
	if w.now < h.next {
		return
	}
	for i := len(w.views) - 1; i > h.view; i-- {
		for _, m := range w.views[i].members {
			if m.Process == h.self {
				h.view = i
				h.Install(w.now, h.self, w.views[i].number, w.views[i].members)
				return
			}
		}
	}
}

// confirm asks whether a majority is in the process's view. What it sent a while ago counts.
func (w *world) confirm(h *host) {
	if h.view < 0 || w.now < h.checked+lease/5 {
		return
	}
	v, same := &w.views[h.view], 0
	for _, other := range v.hosts {
		if !other.ended && w.now >= other.slow && other.Vouches(w.now, v.number) {
			same++
		}
	}
	h.checked = w.now
	for _, p := range h.AskTerms() {
		for _, other := range v.hosts {
			if other.self == p && !other.ended && w.now >= other.slow && other.view >= 0 {
				h.Receive(w.now, other.Terms())
			}
		}
	}
	if same > len(v.hosts)/2 {
		h.Confirm(w.now, w.now, v.number)
	}
}

// carryOut does what a machine wants.
func (w *world) carryOut(h *host, a Actions) {
	for _, item := range a.Stop {
		delete(h.work, item.Partition)
		delete(h.drains, item.Partition)
	}
	for _, item := range a.Drain { // some never end by themselves
		most := 2 * w.handoff
		if w.calm {
			most = drain
		}
		h.drains[item.Partition] = w.now + Time(w.rng.Int64N(int64(most)))
	}
	for _, item := range a.Begin {
		w.begins(h, item)
	}
	for _, msg := range a.Send {
		for _, other := range w.last().hosts {
			if other == h || !w.calm && w.rng.IntN(200) == 0 { // Overflow: some are lost
				continue
			}
			at := w.now + 1 + Time(w.rng.Int64N(int64(delay)))
			if n := len(other.inbox); n > 0 {
				at = max(at, other.inbox[n-1].at) // more order than there is
			}
			other.inbox = append(other.inbox, parcel{at, msg})
		}
	}
}

// begins checks the token of an owner.
func (w *world) begins(h *host, item Item) {
	if other, ok := w.tokens[item]; ok {
		w.t.Fatalf("at %d: %v and %v have begun partition %d with token %d", w.now, other, h.self, item.Partition, item.Token)
	}
	if item.Token <= w.highest[item.Partition] {
		w.t.Fatalf("at %d: %v has begun partition %d with token %d, after %d", w.now, h.self, item.Partition, item.Token,
			w.highest[item.Partition])
	}
	w.tokens[item], w.highest[item.Partition] = h.self, item.Token
	h.work[item.Partition] = item
	w.begun++
}

// check looks for two processes that work on one partition: they own it, and their lease holds.
func (w *world) check() {
	var working [16]*host
	for _, h := range w.all {
		if h.ended || w.now >= h.Until() {
			continue
		}
		for p := range h.work {
			if other := working[p]; other != nil {
				w.t.Fatalf("at %d: %v and %v work on partition %d, with tokens %d and %d", w.now, other.self, h.self, p,
					other.work[p].Token, h.work[p].Token)
			}
			working[p] = h
		}
	}
}

// settled looks for partitions that are not served by the member of the map.
func (w *world) settled() {
	v := w.last()
	m := NewMap(w.partitions)
	m.Update(v.members)
	for p := range w.partitions {
		want, _ := m.Owner(p)
		for _, h := range v.hosts {
			if target, ok := h.Target(p); !ok || target != want.Process {
				w.t.Fatalf("at %d: %v has target %v (%v) for partition %d, want %v", w.now, h.self, target, ok, p, want.Process)
			}
			if len(h.work) != h.Holds() {
				w.t.Fatalf("at %d: %v works on %d partitions, and holds %d", w.now, h.self, len(h.work), h.Holds())
			}
			_, serves := h.Serves(w.now, p)
			if owner, _, ok := h.Owner(p); serves != (h.self == want.Process) || !ok || owner != want.Process {
				w.t.Fatalf("at %d: %v serves partition %d: %v; knows owner %v (%v), want %v", w.now, h.self, p, serves, owner, ok,
					want.Process)
			}
		}
	}
}

func TestUnderSeeds(t *testing.T) {
	seeds := testutil.Seeds.Or(300)
	if testing.Short() {
		seeds = 30
	}
	first := testutil.First.Or(1)
	if testutil.Seed.On() {
		first, seeds = testutil.Seed.Or(1), 1
	}
	begun := 0
	for seed := first; seed < first+seeds; seed++ {
		begun += runSeed(t, uint64(seed))
	}
	t.Logf("%d seeds, %d times a partition was begun", seeds, begun)
}

// runSeed runs one group.
func runSeed(t *testing.T, seed uint64) int {
	failed := true
	defer func() {
		if failed {
			t.Logf("PLEACH_SEED=%d", seed)
		}
	}()
	rng := rand.New(rand.NewPCG(seed, 1))
	size := 1 + rng.IntN(6)
	w := newWorld(t, seed, 4+rng.IntN(9), size)
	for range 5 + rng.IntN(10) {
		for range rng.IntN(int(2 * lease)) {
			w.step()
		}
		if h := w.all[rng.IntN(len(w.all))]; rng.IntN(3) == 0 {
			h.slow = w.now + Time(rng.Int64N(int64(2*lease)))
		}
		w.change(size)
	}
	for range 4 * (lease + w.handoff) {
		w.step()
	}
	// Members that lost a message learn the rest with the next view.
	w.decide(w.last().hosts)
	for range 4 * (lease + w.handoff) {
		w.step()
	}
	w.settledOrLossy()
	failed = false
	return w.begun
}

// settledOrLossy checks the end. What a lost message would have told is known after another
// view, unless the messages of that one are lost, too.
func (w *world) settledOrLossy() {
	for range 3 {
		w.decide(w.last().hosts)
		for range 3 * (lease + w.handoff) {
			w.step()
		}
	}
	w.settled()
}

// Without leases there is no wait: what nobody holds begins as soon as all members have
// reported, and a member without quorum stops at once.
func TestTokensAlone(t *testing.T) {
	c := Config{Partitions: 4, Handoff: handoff}
	a, b := New(c), New(c)
	pa, pb := Process{0, 1}, Process{1, 1}
	list := []Member{{pa, "a", 1}, {pb, "b", 1}}
	a.Install(10, pa, 1, list)
	b.Install(10, pb, 1, list)
	b.Receive(10, a.Terms())
	for _, m := range b.Take().Send {
		a.Receive(11, m)
	}
	b.Receive(11, a.Terms()) // with the base
	a.Receive(11, b.Terms())
	a.Tick(11)
	for p := range 4 {
		target, _ := a.Target(p)
		if _, serves := a.Serves(11, p); serves != (target == pa) {
			t.Errorf("partition %d of %v: served by a: %v", p, target, serves)
		}
	}
	b.Tick(11)
	if len(b.Take().Begin) > 0 {
		t.Error("b has begun without a's report")
	}
	if next := b.Next(); next != 10+handoff {
		t.Errorf("b waits until %d", next)
	}
	a.Suspend()
	a.Tick(12)
	if !a.Take().Lapse {
		t.Error("a goes on without a quorum")
	}
	a.Install(13, pa, 1, list)
	if a.Until() != protocol.Never {
		t.Error("a does not go on with its quorum back")
	}
}
