package founding

// The processes of a schedule, on a simulated network with a clock of its own.

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"

	"github.com/pleach-go/pleach/protocol"
)

// world is a set of processes on a simulated network with a clock of its own.
type world struct {
	rng       *rand.Rand
	now       protocol.Time
	events    []event
	order     int
	processes []*process
	seeds     []string
	expect    int
	nonce     uint64

	blocked  map[[2]int]bool
	loss     float64
	groups   []*group
	failure  error
	verbose  bool
	log      []string
	timeouts bool // a broken rule: a silent founder counts as gone
}

type event struct {
	at    protocol.Time
	order int
	do    func()
}

// process is a place in which one process at a time runs.
type process struct {
	i     int
	life  int // how often it was started; 0: never
	up    bool
	m     *Machine
	group *group
}

// group is one that began.
type group struct {
	began   []Candidate
	entered map[Candidate]*process
	later   bool // it is no longer in its first view
}

func (w *world) after(d protocol.Time, do func()) {
	w.order++
	w.events = append(w.events, event{w.now + d, w.order, do})
}

func (w *world) run(d protocol.Time, until func() bool) bool {
	end := w.now + d
	for w.failure == nil && len(w.events) > 0 {
		if until != nil && until() {
			return true
		}
		next := 0
		for i, e := range w.events {
			if n := w.events[next]; e.at < n.at || e.at == n.at && e.order < n.order {
				next = i
			}
		}
		e := w.events[next]
		if e.at > end {
			break
		}
		w.events = slices.Delete(w.events, next, next+1)
		w.now = e.at
		e.do()
	}
	w.now = max(w.now, end)
	return until != nil && until()
}

func (w *world) logf(format string, args ...any) {
	if w.verbose {
		w.log = append(w.log, fmt.Sprintf("%8.1f ms  ", float64(w.now)/1e6)+fmt.Sprintf(format, args...))
	}
}

func address(i int) string { return fmt.Sprintf("host%d:1", i) }

func (w *world) at(address string) *process {
	for _, p := range w.processes {
		if p.up && address == "host"+strconv.Itoa(p.i)+":1" {
			return p
		}
	}
	return nil
}

func (w *world) start(p *process) {
	w.nonce++
	p.life++
	p.up, p.group = true, nil
	self := Candidate{ID: fmt.Sprint("p", p.i), Address: address(p.i), Nonce: w.nonce}
	p.m = New(Config{Self: self, Expect: w.expect, Seeds: w.seeds})
	w.logf("p%d starts with nonce %d", p.i, w.nonce)
	w.pump(p)
}

func (w *world) kill(p *process) {
	if p.up {
		w.logf("p%d dies", p.i)
		p.up = false
		p.life++
	}
}

// pump sends what a process wants to send, and takes its outcome.
func (w *world) pump(p *process) {
	if !p.up || p.group != nil {
		return
	}
	for {
		to, r, ok := p.m.Next(w.now)
		if !ok {
			break
		}
		w.request(p, to, r)
	}
	began, running := p.m.Outcome()
	switch {
	case began != nil:
		w.enter(p, began)
	case running != "":
		life := p.life
		w.after(w.delay(), func() { w.join(p, life, running) })
	default:
		life := p.life
		w.after(max(p.m.Deadline()-w.now, 1), func() {
			if p.up && p.life == life && p.m.Deadline() <= w.now {
				w.pump(p)
			}
		})
	}
}

func (w *world) upTo(d protocol.Time) protocol.Time { return protocol.Time(w.rng.Int64N(int64(d))) }

func (w *world) delay() protocol.Time { return 1 + w.upTo(20*millisecond) }

// request carries a request. It may be late: after its sender has given up.
func (w *world) request(p *process, to string, r Request) {
	const timeout = 2 * second
	life, open := p.life, true
	finish := func(do func()) {
		if open && p.up && p.life == life && p.group == nil {
			open = false
			do()
			w.pump(p)
		}
	}
	silent := func() {
		finish(func() { p.m.HandleFailure(w.now, to, w.timeouts) })
	}
	w.after(timeout, silent)
	delay := w.delay()
	switch f := w.rng.Float64(); {
	case f < w.loss:
		return
	case f < 2*w.loss:
		delay += timeout + w.upTo(2*second)
	}
	w.after(delay, func() {
		q := w.at(to)
		if q != nil && w.blocked[[2]int{p.i, q.i}] {
			return
		}
		if q == nil {
			w.after(w.delay(), func() { finish(func() { p.m.HandleFailure(w.now, to, true) }) })
			return
		}
		reply := w.handle(q, &r)
		if w.rng.Float64() < w.loss {
			return
		}
		w.after(w.delay(), func() { finish(func() { p.m.HandleReply(w.now, to, &reply) }) })
	})
}

func (w *world) handle(q *process, r *Request) Reply {
	encoded, err := DecodeRequest(r.Encode(nil))
	if err != nil || encoded != *r {
		w.failure = fmt.Errorf("%+v became %+v, %v", r, encoded, err)
	}
	var reply Reply
	if q.group != nil {
		began := q.group.began
		if q.group.later {
			began = nil
		}
		reply = Answer(Candidate{ID: fmt.Sprint("p", q.i), Address: address(q.i)}, began, r)
	} else {
		reply = q.m.Handle(w.now, r)
		w.pump(q)
		w.checkPromises()
	}
	decoded, err := DecodeReply(reply.Encode(nil))
	if err != nil || !reflect.DeepEqual(decoded, reply) {
		w.failure = fmt.Errorf("%+v became %+v, %v", reply, decoded, err)
	}
	return reply
}

// enter makes a process a member of the group that began so.
func (w *world) enter(p *process, began []Candidate) {
	w.logf("p%d begins with %v", p.i, began)
	i := slices.IndexFunc(w.groups, func(g *group) bool { return slices.Equal(g.began, began) })
	if i < 0 {
		i = len(w.groups)
		w.groups = append(w.groups, &group{began: began, entered: map[Candidate]*process{}})
	}
	if len(began) < w.expect {
		w.failure = fmt.Errorf("begun with %d of %d", len(began), w.expect)
	}
	w.become(p, w.groups[i])
}

// become makes a process a member. It tells its seeds so now and then, as one of them
// may be a process that looks for the group.
func (w *world) become(p *process, g *group) {
	p.group = g
	g.entered[p.m.config.Self] = p
	w.check()
	life, turn := p.life, w.rng.IntN(len(w.seeds))
	var tell func()
	tell = func() {
		if !p.up || p.life != life {
			return
		}
		turn++
		seed := w.at(w.seeds[turn%len(w.seeds)])
		if seed != nil && !w.blocked[[2]int{p.i, seed.i}] {
			w.handle(seed, &Request{From: p.m.config.Self, Expect: w.expect, Group: address(p.i)})
		}
		w.after(second, tell)
	}
	w.after(second, tell)
}

// live counts the members of a group that live, and of them those of its first view.
func (g *group) live() (members, first int) {
	for c, p := range g.entered {
		if p.up && p.group == g && p.m.config.Self == c {
			members++
			if slices.Contains(g.began, c) {
				first++
			}
		}
	}
	return members, first
}

// checkPromises complains of a candidate that two others count on at once: both could begin
// with it.
func (w *world) checkPromises() {
	to := make(map[Candidate]*process)
	for _, p := range w.processes {
		if !p.up || p.group != nil {
			continue
		}
		for _, f := range p.m.promised {
			if other := to[f.Candidate]; other != nil {
				w.failure = fmt.Errorf("%s is promised to p%d and to p%d", f.ID, other.i, p.i)
			}
			to[f.Candidate] = p
		}
	}
}

// check complains of two groups with live members.
func (w *world) check() {
	living := 0
	for _, g := range w.groups {
		if members, _ := g.live(); members > 0 {
			living++
		}
	}
	if living > 1 {
		w.failure = fmt.Errorf("%d groups live", living)
	}
}

// join lets a process join a group, if that can decide it.
func (w *world) join(p *process, life int, running string) {
	if !p.up || p.life != life || p.group != nil {
		return
	}
	q := w.at(running)
	if q == nil || q.group == nil || w.blocked[[2]int{p.i, q.i}] || !q.group.quorum() {
		w.after(second, func() {
			if p.up && p.life == life && p.group == nil {
				p.m.Lost(w.now)
				w.pump(p)
			}
		})
		return
	}
	w.logf("p%d joins", p.i)
	q.group.later = true
	w.become(p, q.group)
}

// quorum reports whether a majority of the first view is there, or of a later one; the
// test does not follow later views.
func (g *group) quorum() bool {
	members, first := g.live()
	return 2*first > len(g.began) || g.later && 2*members > len(g.began)
}

// settled reports whether all are in one group.
func (w *world) settled() bool {
	for _, p := range w.processes {
		if !p.up || p.group == nil || p.group != w.processes[0].group {
			return false
		}
	}
	return true
}

// stuck reports whether a group that began has lost its majority at once. Such a group
// waits for an operator.
func (w *world) stuck() bool {
	return slices.ContainsFunc(w.groups, func(g *group) bool {
		members, _ := g.live()
		return members > 0 && !g.quorum()
	})
}

func newWorld(seed uint64, size, expect int) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), now: 1, expect: expect, blocked: map[[2]int]bool{}}
	for i := range size {
		w.processes = append(w.processes, &process{i: i})
	}
	for i := range 1 + w.rng.IntN(size) { // the same for all, in any order
		w.seeds = append(w.seeds, address((i*7+int(seed))%size))
	}
	w.loss = []float64{0, 0.02, 0.2}[w.rng.IntN(3)]
	return w
}

func (w *world) cut(p, q *process) {
	w.blocked[[2]int{p.i, q.i}], w.blocked[[2]int{q.i, p.i}] = p != q, p != q
}
