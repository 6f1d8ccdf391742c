package lifecycle

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/founding"
	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// world is some hosts under one clock and one seed. Their processes crash at any action,
// and come back with what their disks have.
type world struct {
	rng     *rand.Rand
	now     protocol.Time
	events  events
	order   int
	hosts   []*host
	expect  int
	moves   bool // processes come back at other addresses
	calm    bool // nothing crashes any more
	ports   int
	nonces  uint64
	views   map[uint64][]decided
	failure error
	log     []string
}

type event struct {
	at    protocol.Time
	order int
	do    func()
}

// events is a heap of what happens, in order.
type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}

func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// host has the disk of an ID, and the process that runs there.
type host struct {
	w       *world
	id      string
	disk    disk
	running *process // nil: none
}

// disk is a data folder: what was synced, and a later state that only follows the view.
type disk struct {
	saves         uint64
	synced        image
	following     *image
	hasEverSynced bool
}

type image struct {
	saves, next, starts uint64
	state               []byte
	former              *membership.Seat
}

// process is one start of a host: a machine until it is a member, a seat beside it or a
// member.
type process struct {
	h        *host
	address  string
	next     uint64 // nonce to save
	starts   uint64
	machine  *Machine
	seat     *member.Seat
	place    *membership.Seat
	member   *membership.Machine
	self     membership.Member
	waiting  map[uint64]func([]byte) // joins
	token    uint64
	timer    protocol.Time
	suspects map[protocol.Rank]uint64
	began    []founding.Candidate
	group    protocol.Time
	peers    map[uint64]*process // connected, by nonce
	former   *membership.Seat
	seeds    []string
	last     *membership.View // installed
}

// foundingAnswer answers a process that looks for a group.
func (p *process) foundingAnswer(r *control.Founding) founding.Reply {
	began := p.began
	if p.member.View().Number > 1 {
		began = nil
	}
	return founding.Answer(founding.Candidate{ID: p.h.id, Address: p.address}, began, &r.Request)
}

// emptyLog is the log of a member without messages.
type emptyLog struct{ installed func(*membership.View) }

func (*emptyLog) Freeze() []membership.Position { return nil }
func (*emptyLog) Thaw()                         {}
func (*emptyLog) Flush([]membership.Position)   {}
func (*emptyLog) Flushed() bool                 { return true }
func (l *emptyLog) Install(v *membership.View)  { l.installed(v) }

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 59)), now: 1, views: map[uint64][]decided{}}
	w.expect = []int{3, 3, 5, 4, 2}[w.rng.IntN(5)]
	w.moves = w.rng.IntN(4) == 0
	for i := range w.expect {
		w.hosts = append(w.hosts, &host{w: w, id: fmt.Sprint("p", i)})
	}
	return w
}

func (w *world) after(d protocol.Time, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now + d, w.order, do})
}

func (w *world) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%9.3f ms  ", float64(w.now)/1e6)+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
	}
}

// run lets time pass, until a condition holds.
func (w *world) run(d protocol.Time, until func() bool) bool {
	end := w.now + d
	for w.failure == nil {
		if until != nil && until() {
			return true
		}
		if len(w.events) == 0 || w.events[0].at > end {
			w.now = end
			return false
		}
		e := heap.Pop(&w.events).(event)
		w.now = max(w.now, e.at)
		e.do()
	}
	return false
}

func (w *world) latency() protocol.Time { return protocol.Time(50_000 + w.rng.IntN(2_000_000)) }

// at returns the process at an address.
func (w *world) at(address string) *process {
	for _, h := range w.hosts {
		if h.running != nil && h.running.address == address {
			return h.running
		}
	}
	return nil
}

func (w *world) nonce() uint64 {
	w.nonces++
	return w.nonces
}

// address is where the host's process listens, before it is started.
func (h *host) address() string {
	if h.w.moves {
		h.w.ports++
		return fmt.Sprint(h.id, ":", h.w.ports)
	}
	return h.id + ":1"
}

// startAll starts all hosts that are down, at addresses that all know.
func (w *world) startAll() {
	var down []*host
	var seeds []string
	for _, h := range w.hosts {
		if h.running == nil {
			down = append(down, h)
			h.running = &process{h: h, address: h.address()}
		}
		seeds = append(seeds, h.running.address)
	}
	for _, h := range down {
		h.running.start(seeds)
	}
}

// crash ends the process of a host. With the power, what was not synced may be lost.
func (h *host) crash() {
	if h.running == nil {
		return
	}
	h.w.logf("%s crashes", h.id)
	h.running = nil
	if h.w.rng.IntN(3) == 0 {
		h.disk.following = nil
	}
}

// leave has the process of a host leave, if it is a member.
func (h *host) leave() {
	if p := h.running; p != nil && p.member != nil {
		h.w.logf("%s leaves", h.id)
		p.member.Leave(h.w.now)
		p.pump()
	}
}

// mayCrash crashes a process now and then, at an action.
func (p *process) mayCrash() bool {
	if !p.h.w.calm && p.h.running == p && p.h.w.rng.IntN(60) == 0 {
		p.h.crash()
	}
	return p.h.running != p
}

// save saves a state, and may crash before and after.
func (p *process) save(state []byte, sync bool) error {
	if p.mayCrash() {
		return fmt.Errorf("crashed")
	}
	d := &p.h.disk
	d.saves++
	i := image{d.saves, p.next, p.starts, state, p.former}
	if sync {
		d.synced, d.hasEverSynced = i, true
	} else {
		d.following = &i
	}
	if p.mayCrash() {
		return fmt.Errorf("crashed")
	}
	return nil
}

// start loads the disk, and begins.
func (p *process) start(seeds []string) {
	h, w := p.h, p.h.w
	i := h.disk.synced
	if f := h.disk.following; f != nil && f.saves > i.saves {
		i = *f
	}
	p.starts, p.next, p.former = i.starts+1, i.next, i.former
	if p.next == 0 {
		p.next = w.nonce()
	}
	var place *membership.Seat
	if len(i.state) > 0 {
		var err error
		if place, err = membership.DecodeSeat(i.state); err != nil {
			w.fail("%s: %v", h.id, err)
			return
		}
	}
	if p.save(i.state, true) != nil {
		return
	}
	p.suspects = map[protocol.Rank]uint64{}
	p.self = membership.Member{Identity: h.id, Address: p.address, Nonce: p.next, Version: 1}
	seeds = slices.DeleteFunc(slices.Clone(seeds), func(s string) bool { return s == p.address })
	if w.moves && len(seeds) > 2 { // each knows some
		w.rng.Shuffle(len(seeds), func(i, j int) { seeds[i], seeds[j] = seeds[j], seeds[i] })
		seeds = seeds[:2]
	}
	slices.Sort(seeds)
	p.seeds = seeds
	p.machine = New(Config{
		Self: p.self, Seeds: seeds, Expect: w.expect, Starts: p.starts, Durable: true, Place: place, Former: p.former, NewNonce: w.nonce,
		Speaks: func(uint16) error { return nil },
	})
	where := "without a place"
	if place != nil {
		where = fmt.Sprintf("in %v as incarnation %d", &place.View, place.Self.Incarnation)
	}
	w.logf("%s starts at %s, %s, nonce %d", h.id, p.address, where, p.next)
	p.machine.Start(w.now)
	p.pump()
}

// pump carries out all that a process wants to do now.
func (p *process) pump() {
	w := p.h.w
	for p.h.running == p {
		if p.member != nil {
			p.pumpMember()
			return
		}
		a := p.machine.Next(w.now)
		if a == nil {
			break
		}
		p.do(a)
	}
	if p.h.running != p {
		return
	}
	p.pumpSeat()
	if p.h.running == p {
		p.wakeAt(p.machine.Deadline())
	}
}

// wakeAt pumps the process at a time.
func (p *process) wakeAt(due protocol.Time) {
	w := p.h.w
	if due == protocol.Never || p.timer > w.now && p.timer <= due {
		return
	}
	p.timer = max(due, w.now+1)
	at := p.timer
	w.after(at-w.now, func() {
		if p.h.running == p && p.timer == at {
			p.timer = 0
			p.pump()
		}
	})
}

func (p *process) do(a Action) {
	w := p.h.w
	switch a := a.(type) {
	case Ask:
		if p.mayCrash() {
			return
		}
		w.carryRequest(p, &a)
	case Stand:
		w.logf("%s is a candidate", p.h.id)
		p.seat, p.place = nil, nil
	case Hold:
		p.hold(&a)
	case Suspect:
		if p.seat == nil {
			return
		}
		p.seat.Report(w.now, member.Report{Rank: a.Rank, Incarnation: a.Incarnation})
	case Forget:
		w.logf("%s gives its place up", p.h.id)
		_ = p.save(nil, true)
	case Become:
		p.become(&a.Membership)
	case Fail:
		w.fail("%s fails: %v", p.h.id, a.Err)
	}
}

// carryRequest carries a request and its reply.
func (w *world) carryRequest(p *process, a *Ask) {
	done := false
	reply := func(r Reply) {
		if done {
			return
		}
		done = true
		if p.h.running == p && p.machine != nil && p.member == nil {
			p.machine.Replied(w.now, a.Token, r)
			p.pump()
		}
	}
	w.after(a.Timeout, func() { reply(Reply{Err: fmt.Errorf("timeout")}) })
	w.after(w.latency(), func() {
		to := w.at(a.Address)
		if to == nil || to.machine == nil {
			reply(Reply{Err: fmt.Errorf("refused"), Gone: to == nil})
			return
		}
		to.requested(a.Request, func(b []byte) {
			if to.mayCrash() {
				return
			}
			w.after(w.latency(), func() {
				r := Reply{Body: b}
				if _, ok := a.Request.(control.Founding); !ok {
					r.Body, r.Err = control.Open(b)
				}
				reply(r)
			})
		})
	})
}

// requested answers a request.
func (p *process) requested(r control.Request, answer func([]byte)) {
	w := p.h.w
	if p.member == nil {
		answer(p.machine.Requested(w.now, r))
		if p.h.running == p {
			p.pump()
		}
		return
	}
	v := p.member.View()
	switch r := r.(type) {
	case control.View:
		answer((&control.ViewReply{View: v}).Encode())
	case control.Introduce:
		i := control.Introduction{
			Contact: control.Contact{ID: p.h.id, Address: p.address}, Role: control.Member,
			Marks: []uint64{control.Mark(p.h.id, p.self.Nonce)}, View: &v, Decisions: p.member.Decisions(),
		}
		answer(control.Accept(i.Encode(nil)))
	case control.Founding:
		reply := p.foundingAnswer(&r)
		answer(reply.Encode(nil))
	case control.Join:
		p.token++
		p.waiting[p.token] = answer
		p.member.Join(w.now, p.token, r.Candidate, false)
		p.pump()
	}
}

// hold begins a seat.
func (p *process) hold(a *Hold) {
	w := p.h.w
	p.place, p.next, p.former = a.Place, a.Candidate.Nonce, nil
	w.logf("%s holds its place in %v as incarnation %d", p.h.id, &a.Place.View, a.Place.Self.Incarnation)
	var err error
	p.suspects = map[protocol.Rank]uint64{}
	p.belongs(&a.Place.View)
	p.seat, err = member.NewSeat(member.SeatConfig{
		Seat: a.Place, Candidate: a.Candidate, Heartbeat: heartbeat.Config{Interval: 500 * millisecond},
		Save: func(state []byte, sync bool) { // done at once, or after a crash never
			if s := p.seat; p.save(state, sync) == nil {
				w.after(1, func() {
					if p.h.running == p && p.seat == s && s != nil {
						s.Saved(w.now, nil)
						p.pump()
					}
				})
			}
		},
		OnView: func(v *membership.View) {
			w.decided(p, v)
			p.machine.Moved(w.now, v, p.seat.Machine().DecisionsUpTo(v.Number))
		},
	})
	if err != nil {
		w.fail("%s: %v", p.h.id, err)
		return
	}
	p.seat.Start(w.now)
	p.detect()
}

// pumpSeat carries out what a seat wants to do now.
func (p *process) pumpSeat() {
	w := p.h.w
	for s := p.seat; s != nil && s == p.seat && p.h.running == p; {
		to, head, _, ok := s.Next(w.now)
		if !ok {
			answer, over := s.Outcome()
			switch {
			case answer != nil:
				p.machine.Admitted(w.now, answer)
			case over != nil:
				w.logf("the place of %s is over: %v", p.h.id, over)
				p.machine.Over(w.now)
			default:
				p.wakeAt(s.Deadline())
				return
			}
			p.seat = nil
			w.after(1, func() {
				if p.h.running == p {
					p.pump()
				}
			})
			return
		}
		v := s.View()
		p.carry(&v, p.place.Self, to, head)
	}
}

// become makes the process a member.
func (p *process) become(b *Membership) {
	w := p.h.w
	w.logf("%s becomes rank %d, incarnation %d of %v", p.h.id, b.Self.Rank, b.Self.Incarnation, &b.View)
	p.seat, p.self, p.waiting = nil, b.Self, map[uint64]func([]byte){}
	p.suspects = map[protocol.Rank]uint64{}
	p.belongs(&b.View)
	w.decided(p, &b.View)
	m, err := membership.New(membership.Config{
		Self: b.Self, View: b.View, Durable: true, Decisions: b.Decisions,
		Log: &emptyLog{func(v *membership.View) {
			w.decided(p, v)
			p.last = v
		}},
	})
	if err != nil {
		w.fail("%s: %v", p.h.id, err)
		return
	}
	p.member, p.next, p.timer, p.former = m, 0, 0, nil
	p.askOthers()
	p.began = b.Began
	p.detect()
}

// pumpMember carries out what a member wants to do now.
func (p *process) pumpMember() {
	w, m := p.h.w, p.member
	for p.h.running == p {
		to, frame, ok := m.Next(w.now)
		state, sync, unsaved := m.Unsaved()
		if unsaved {
			if p.save(state, sync) != nil {
				return
			}
			m.Saved(w.now)
		}
		if !ok && !unsaved {
			break
		}
		if ok {
			v := m.View()
			p.carry(&v, p.self, to, append([]byte{0x80}, frame...))
		}
	}
	for {
		a, ok := m.Answers()
		if !ok {
			break
		}
		answer := p.waiting[a.Token]
		delete(p.waiting, a.Token)
		switch {
		case answer == nil:
		case a.Err != nil:
			answer(control.Refuse(a.Err))
		default:
			answer((&control.Admission{View: a.View, Rank: a.Rank, Decisions: a.Decisions}).Encode())
		}
	}
	if p.h.running != p {
		return
	}
	switch state, err := m.State(); state {
	case membership.Left:
		w.logf("%s has left", p.h.id)
		p.gone()
		return
	case membership.Evicted:
		w.logf("%s: %v", p.h.id, err)
		p.gone()
		w.after(10*millisecond, func() {
			if p.h.running == nil {
				w.startAll()
			}
		})
		return
	}
	p.wakeAt(m.Deadline())
}

// gone ends a member. Its disk keeps the view that it is no longer in.
func (p *process) gone() {
	d := disk{synced: image{saves: 1}}
	if p.last != nil {
		d.synced.former = membership.NewSeat(membership.Member{}, *p.last, p.member.DecisionsUpTo(p.last.Number))
	}
	d.saves = 1
	p.h.disk, p.h.running = d, nil
}

// askOthers has a member without a quorum ask other processes for their views.
func (p *process) askOthers() {
	w := p.h.w
	w.after(500*millisecond, func() {
		if p.h.running != p {
			return
		}
		p.askOthers()
		if to := w.at(p.seeds[w.rng.IntN(len(p.seeds))]); to != nil && to.machine != nil { // as seeds are told
			self := founding.Candidate{ID: p.h.id, Nonce: p.self.Nonce, Address: p.address}
			to.requested(control.Founding{Request: founding.Request{From: self, Group: p.address}}, func([]byte) {})
		}
		to := w.hosts[w.rng.IntN(len(w.hosts))].running
		if p.h.running != p {
			return
		}
		if state, _ := p.member.State(); state != membership.NoQuorum || to == nil || to == p || to.machine == nil {
			return
		}
		to.requested(control.Introduce{}, func(b []byte) {
			body, _ := control.Open(b)
			i, err := control.DecodeIntroduction(body)
			if v := p.member.View(); err == nil && i.View != nil && i.View.Number > v.Number {
				if i.View.Holds(p.self.Rank, p.self.Incarnation) {
					_ = p.member.Learn(w.now, i.Decisions)
					p.pump()
				} else if i.Role != control.Candidate {
					p.removed(i.View.Number)
				}
			}
		})
	})
}

// carry carries a frame of a view change to the process of a rank. A process that knows a
// later view without the sender tells it so.
func (p *process) carry(v *membership.View, self membership.Member, to protocol.Rank, frame []byte) {
	w := p.h.w
	if p.mayCrash() {
		return
	}
	m, ok := v.Member(to)
	if !ok || len(frame) == 0 || frame[0] != 0x80 {
		return
	}
	frame = slices.Clone(frame)
	w.after(w.latency(), func() {
		q := w.at(p.where(&m))
		if q == nil || q.machine == nil {
			return
		}
		theirs, holder := q.current()
		switch {
		case theirs == nil || holder.Rank != to || holder.Incarnation != m.Incarnation || holder.Nonce != m.Nonce:
			if theirs != nil && theirs.Number > v.Number && !theirs.Holds(self.Rank, self.Incarnation) {
				p.removed(theirs.Number)
			}
		case theirs.Holds(self.Rank, self.Incarnation):
			if q.peers == nil {
				q.peers = map[uint64]*process{}
			}
			q.peers[self.Nonce] = p
			q.receive(self.Rank, frame)
		case theirs.Number > v.Number:
			p.removed(theirs.Number)
		}
	})
}

// where is the address of a member, as far as the process knows, or where its connection
// comes from.
func (p *process) where(m *membership.Member) string {
	if from := p.peers[m.Nonce]; from != nil && from.h.running == from {
		return from.address
	}
	if p.member != nil {
		return m.Address
	}
	return p.machine.Address(m)
}

// current is the view of a process that takes part in views, and who it is there.
func (p *process) current() (*membership.View, membership.Member) {
	switch {
	case p.member != nil:
		v := p.member.View()
		return &v, p.self
	case p.seat != nil:
		v := p.seat.View()
		return &v, p.place.Self
	}
	return nil, membership.Member{}
}

func (p *process) removed(view uint64) {
	if p.h.running != p {
		return
	}
	if p.member != nil { // a seat believes introductions only
		p.member.Removed(p.h.w.now, view, nil)
		p.pump()
	}
}

func (p *process) receive(from protocol.Rank, frame []byte) {
	var err error
	if p.member != nil {
		err = p.member.Receive(p.h.w.now, from, frame[1:])
		p.member.LogFlushed(p.h.w.now)
	} else {
		err = p.seat.Receive(p.h.w.now, from, frame)
	}
	if err != nil {
		p.h.w.fail("%s: %v", p.h.id, err)
	}
	p.pump()
}

// detect is the detector of a process, now and then: a member is there if a process has its
// nonce at its address.
func (p *process) detect() {
	w := p.h.w
	seat, m := p.seat, p.member
	w.after(protocol.Time(5+w.rng.IntN(20))*millisecond, func() {
		if p.h.running != p || p.seat != seat || p.member != m {
			return
		}
		v, self := p.current()
		if v == nil {
			return
		}
		for _, o := range v.Members.All() {
			if o.Rank == self.Rank {
				continue
			}
			there := false
			if q := w.at(p.where(o)); q != nil && q.machine != nil {
				theirs, holder := q.current()
				there = theirs == nil || holder.Nonce == o.Nonce && holder.Incarnation == o.Incarnation || theirs.Number < v.Number && !w.calm
			}
			known := p.suspects[o.Rank] == o.Incarnation
			if there == known {
				w.logf("%s takes %s of incarnation %d for there: %v", p.h.id, o.Identity, o.Incarnation, there)
				p.suspects[o.Rank] = o.Incarnation
				if there {
					delete(p.suspects, o.Rank)
				}
				switch {
				case m != nil && there:
					m.Trust(w.now, o.Rank, o.Incarnation)
				case m != nil:
					m.Suspect(w.now, o.Rank, o.Incarnation)
				default:
					seat.Report(w.now, member.Report{Rank: o.Rank, Incarnation: o.Incarnation, Alive: there})
				}
			}
		}
		p.pump()
		if p.h.running == p {
			p.detect()
		}
	})
}

// decided is a view that a process has installed, and the group that it belongs to: the
// time at which that began.
type decided struct {
	membership.View
	group protocol.Time
}

// decided checks that there is one view of a number in the group of a process.
func (w *world) decided(p *process, v *membership.View) {
	for _, other := range w.views[v.Number] {
		if other.Equal(v) {
			return
		}
		if other.group == p.group {
			w.fail("%s has %v %+v, and another one has %v %+v", p.h.id, v, slices.Collect(values(v)), &other.View, slices.Collect(values(&other.View)))
		}
	}
	w.views[v.Number] = append(w.views[v.Number], decided{*v, p.group})
}

// belongs notes the group of a process that has got a view from others or from its disk.
func (p *process) belongs(v *membership.View) {
	w := p.h.w
	for _, other := range w.views[v.Number] {
		if other.Equal(v) {
			p.group = other.group
			return
		}
	}
	if p.group = w.now; v.Number > 1 {
		w.fail("%s has %v %v, which nobody has decided", p.h.id, v, slices.Collect(values(v)))
	}
}

func values(v *membership.View) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, m := range v.Members.All() {
			if !yield(fmt.Sprintf("%s/%d/%d", m.Identity, m.Incarnation, m.Nonce)) {
				return
			}
		}
	}
}

// together reports whether all hosts are members of one view that has just them.
func (w *world) together() bool {
	var first *membership.View
	for _, h := range w.hosts {
		if h.running == nil || h.running.member == nil {
			return false
		}
		v := h.running.member.View()
		if first == nil {
			first = &v
		}
		if v.Number != first.Number || v.Members.Len() != len(w.hosts) {
			return false
		}
	}
	return true
}

func (w *world) situation() string {
	var b strings.Builder
	for _, h := range w.hosts {
		p := h.running
		switch {
		case p == nil:
			fmt.Fprintf(&b, "%s is down\n", h.id)
		case p.member != nil:
			v := p.member.View()
			s, _ := p.member.State()
			fmt.Fprintf(&b, "%s is rank %d incarnation %d of %v %v, %v\n", h.id, p.self.Rank, p.self.Incarnation, &v, slices.Collect(values(&v)), s)
		case p.seat != nil:
			v := p.seat.View()
			r, n, _ := p.seat.Quorum()
			fmt.Fprintf(&b, "%s is a seat of %v %v, %d of %d\n", h.id, &v, slices.Collect(values(&v)), r, n)
		case p.machine != nil:
			fmt.Fprintf(&b, "%s is a candidate in stage %d, nonce %d, waits for %v\n", h.id, p.machine.stage, p.machine.self.Nonce, p.machine.Waiting())
		}
	}
	return b.String()
}
