package relay

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A model of zones and their backbone: broadcasts in a zone are reliable, ordered by
// sender, and delivered by all survivors or by none when their sender dies; what is sent
// over the backbone arrives in order or is lost with its sender or receiver. One step
// moves one frame. Which one is chosen by a schedule, so that a run can be repeated.

type modelMember struct {
	*Machine
	zone  string
	rank  int // in the zone, and in the backbone: 100 * zone + rank
	dead  bool
	cut   bool // its zone has no backbone
	got   []string
	casts int // it has made
}

type modelCast struct {
	from  *modelMember
	frame []byte
	to    []*modelMember // that do not have it yet
	all   []*modelMember // of the zone when it was made
	stab  []func()       // called when it is everywhere
}

type modelSend struct {
	from, to *modelMember
	frame    []byte
	forward  bool // to a member of the same zone
}

type model struct {
	t       *testing.T
	now     Time
	members []*modelMember
	casts   []*modelCast
	sends   []*modelSend
	views   []func() // changes of views that members have not seen yet
	random  uint64
	steps   int
	keep    int
	limit   Time // no deadline beyond it counts
	checked int  // inputs whose outcome was judged, or passed over: see checkInvariants
}

const modelStall = Time(1000)

func newModel(t *testing.T, zones, size int, seed uint64, keep int) *model {
	m := &model{t: t, now: 1, random: seed, keep: keep}
	for z := range zones {
		for r := range size {
			m.start(string(rune('a'+z)), z, r)
		}
	}
	for z := range zones {
		m.zoneView(string(rune('a' + z)))
	}
	m.backboneView()
	m.drainViews()
	m.limit = 10 * modelStall
	m.run() // the zones meet
	m.limit = m.now + 60*modelStall
	return m
}

func (m *model) start(zone string, z, r int) *modelMember {
	p := &modelMember{zone: zone, rank: 100*z + r}
	p.Machine = New(Config{
		Self: Origin{zone, fmt.Sprint(zone, r), 1}, Born: uint64(m.now), KeepBytes: m.keep, MaxOrigins: 100, Window: 1 << 20,
		AckDelay: 10, AckBytes: 1 << 15, WatermarkDelay: 10, Stall: modelStall, GapDelay: 500, ForwardDelay: 1,
	})
	if len(m.alive(zone)) == 0 || m.steps == 0 {
		p.Begin(m.now)
	}
	m.members = append(m.members, p)
	return p
}

func (m *model) alive(zone string) (list []*modelMember) {
	for _, p := range m.members {
		if !p.dead && (zone == "" || p.zone == zone) {
			list = append(list, p)
		}
	}
	return list
}

func (m *model) find(rank int) *modelMember {
	for _, p := range m.members {
		if p.rank == rank && !p.dead {
			return p
		}
	}
	return nil
}

func (m *model) zoneView(zone string) {
	alive := m.alive(zone)
	var delegates []Sibling
	for _, p := range alive[:min(len(alive), 3)] {
		delegates = append(delegates, Sibling{p.rank, uint64(p.rank)})
	}
	for _, p := range alive {
		m.views = append(m.views, func() { m.do(p, func() { p.SetZone(m.now, delegates, p.rank) }) })
	}
}

func (m *model) backboneView() {
	var peers []Peer
	for _, p := range m.alive("") {
		if !p.cut {
			peers = append(peers, Peer{Rank: p.rank, Incarnation: 1, Zone: p.zone, Age: uint64(p.rank), Born: p.born})
		}
	}
	for _, p := range m.alive("") {
		if p.cut {
			m.views = append(m.views, func() {
				m.do(p, func() { p.SetBackbone(m.now, []Peer{{Rank: p.rank, Zone: p.zone, Age: uint64(p.rank), Born: p.born}}) })
			})
		} else {
			m.views = append(m.views, func() { m.do(p, func() { p.SetBackbone(m.now, peers) }) })
		}
	}
}

func (m *model) drainViews() { m.takeViews(len(m.views)) }

// takeViews has the first members that have not seen a change see it.
func (m *model) takeViews(n int) {
	for range n {
		v := m.views[0]
		m.views = m.views[1:]
		v()
	}
}

// do has a member take an input, and performs its actions.
func (m *model) do(p *modelMember, input func()) {
	if p.dead {
		return
	}
	input()
	m.checkInvariants(p)
	m.perform(p)
}

// perform performs the actions of a member.
func (m *model) perform(p *modelMember) {
	for _, msg := range p.Delivered() {
		text := fmt.Sprintf("%s %d %s", msg.Origin.ID, msg.Seq, msg.Data)
		if msg.Lost > 0 {
			text = fmt.Sprintf("%s lost %d", msg.Origin.ID, msg.Lost)
		}
		p.got = append(p.got, text)
	}
	for _, a := range p.Actions() {
		switch a := a.(type) {
		case Cast:
			m.cast(p, a.Frame)
		case Send:
			if q := m.find(a.Peer.Rank); q != nil && q.cut == p.cut {
				m.sends = append(m.sends, &modelSend{p, q, bytes.Clone(a.Frame), false})
			}
		case Forward:
			if q := m.find(a.Rank); q != nil {
				m.sends = append(m.sends, &modelSend{p, q, bytes.Clone(a.Frame), true})
			}
		case Poll:
			m.poll(p)
		case Fetch:
			if q := m.find(a.Rank); q != nil {
				if reply, err := q.Serve(a.Frame); err == nil {
					m.do(p, func() { _ = p.Fetched(m.now, reply) })
				}
			}
		}
	}
}

// cast has a member broadcast a frame in its zone.
func (m *model) cast(p *modelMember, frame []byte) {
	others := slices.DeleteFunc(m.alive(p.zone), func(q *modelMember) bool { return q == p })
	p.casts++
	m.casts = append(m.casts, &modelCast{from: p, frame: bytes.Clone(frame), to: others, all: slices.Clone(others)})
}

// poll calls Stable when all casts of a member before it are everywhere.
func (m *model) poll(p *modelMember) {
	for i := len(m.casts) - 1; i >= 0; i-- {
		if c := m.casts[i]; c.from == p {
			c.stab = append(c.stab, func() { m.do(p, func() { p.Stable(m.now, true) }) })
			return
		}
	}
	m.views = append(m.views, func() { m.do(p, func() { p.Stable(m.now, true) }) })
}

// kill ends a member. What it has cast reaches all survivors if one of them has it, and
// none otherwise. What it has sent over the backbone is lost if unlucky.
func (m *model) kill(p *modelMember) {
	p.dead = true
	for _, c := range slices.Clone(m.casts) {
		c.to = slices.DeleteFunc(c.to, func(q *modelMember) bool { return q == p })
		if c.from != p {
			m.finishCast(c)
			continue
		}
		somebody := slices.ContainsFunc(c.all, func(q *modelMember) bool { return !q.dead && !slices.Contains(c.to, q) })
		for somebody && len(c.to) > 0 {
			m.deliverCast(c, c.to[0])
		}
		if !somebody {
			m.casts = slices.DeleteFunc(m.casts, func(d *modelCast) bool { return d == c })
		}
	}
	lucky := m.draw(2) == 0
	m.sends = slices.DeleteFunc(m.sends, func(s *modelSend) bool { return s.to == p || s.from == p && !lucky })
	m.zoneView(p.zone)
	m.backboneView()
}

func (m *model) deliverCast(c *modelCast, p *modelMember) {
	c.to = slices.DeleteFunc(c.to, func(q *modelMember) bool { return q == p })
	m.do(p, func() {
		if err := p.FromZone(m.now, c.from.rank, c.frame); err != nil {
			m.t.Fatal(err)
		}
	})
	m.finishCast(c)
}

func (m *model) deliverSend(s *modelSend) {
	m.sends = slices.DeleteFunc(m.sends, func(d *modelSend) bool { return d == s })
	m.do(s.to, func() {
		if s.forward {
			_ = s.to.Forwarded(m.now, s.from.rank, s.frame)
		} else {
			_ = s.to.FromPeer(m.now, s.from.rank, s.frame)
		}
	})
}

func (m *model) finishCast(c *modelCast) {
	if len(c.to) > 0 || !slices.Contains(m.casts, c) {
		return
	}
	m.casts = slices.DeleteFunc(m.casts, func(d *modelCast) bool { return d == c })
	for _, f := range c.stab {
		f()
	}
}

func (m *model) draw(n int) int {
	m.random = m.random*6364136223846793005 + 1442695040888963407
	return int(m.random>>33) % n
}

// step moves one frame, or the time. It reports false if nothing is to be done for long.
func (m *model) step() bool {
	m.steps++
	m.now++
	if alive := m.alive(""); len(alive) > 0 {
		m.checkDeadline(alive[m.steps%len(alive)])
	}
	type move func()
	var moves []move
	for i, c := range m.casts {
		for _, p := range c.to {
			first := !slices.ContainsFunc(m.casts[:i], func(d *modelCast) bool {
				return d.from == c.from &&
					slices.Contains(d.to, p)
			})
			if first {
				moves = append(moves, func() { m.deliverCast(c, p) })
			}
		}
	}
	for i, s := range m.sends {
		if !slices.ContainsFunc(m.sends[:i], func(d *modelSend) bool {
			return d.from == s.from && d.to == s.to &&
				d.forward == s.forward
		}) {
			moves = append(moves, func() { m.deliverSend(s) })
		}
	}
	for i := range min(1, len(m.views)) {
		moves = append(moves, func() {
			v := m.views[i]
			m.views = slices.Delete(m.views, i, i+1)
			v()
		})
	}
	if len(moves) > 0 {
		moves[m.draw(len(moves))]()
		return true
	}
	next := Time(-1)
	for _, p := range m.alive("") {
		if d := p.Deadline(); d >= 0 && (next < 0 || d < next) {
			next = d
		}
	}
	if next < 0 || next > m.limit {
		return false
	}
	m.now = max(m.now, next)
	for _, p := range m.alive("") {
		if d := p.Deadline(); d >= 0 && d <= m.now {
			m.do(p, func() { p.Tick(m.now) })
		}
	}
	return true
}

// run steps until nothing is left to do.
func (m *model) run() {
	for m.step() {
		if m.steps > 10000 {
			m.t.Fatal("no end")
		}
	}
}

// check compares what all members have got of each origin: one origin's messages once, in
// order, without a hole, and as many as the others have.
func (m *model) check(what string, sent map[string]int) {
	m.t.Helper()
	for _, p := range m.alive("") {
		next := map[string]int{}
		for _, g := range p.got {
			var id, data string
			var seq int
			if n, _ := fmt.Sscanf(g, "%s %d %s", &id, &seq, &data); n != 3 {
				m.t.Fatalf("%s: %s got %q", what, p.self.ID, g)
			}
			next[id]++
			if seq != next[id] || data != fmt.Sprint(id, "-", seq) {
				m.t.Fatalf("%s: %s got %q as number %d of %s", what, p.self.ID, g, next[id], id)
			}
		}
		for id, n := range sent {
			if origin := m.findID(id); origin != p && (next[id] > n || next[id] < n && !origin.dead) {
				m.t.Fatalf("%s: %s has %d of %d messages of %s", what, p.self.ID, next[id], n, id)
			}
			if ref := m.reference(id, p); m.findID(id) != p && next[id] != ref {
				m.t.Fatalf("%s: %s has %d messages of %s, and another member %d", what, p.self.ID, next[id], id, ref)
			}
		}
	}
}

func (m *model) findID(id string) *modelMember {
	i := slices.IndexFunc(m.members, func(p *modelMember) bool { return p.self.ID == id })
	return m.members[i]
}

// reference is how many messages of an origin a survivor has that is not the origin.
func (m *model) reference(id string, but *modelMember) (n int) {
	for _, q := range m.alive("") {
		if q.self.ID == id || q == but {
			continue
		}
		n = 0
		for _, g := range q.got {
			var other string
			if _, _ = fmt.Sscan(g, &other); other == id {
				n++
			}
		}
		return n
	}
	return 0
}

func (m *model) broadcast(p *modelMember, sent map[string]int) {
	if !p.dead {
		sent[p.self.ID]++
		m.do(p, func() { m.cast(p, p.Broadcast(m.now, "", []byte(fmt.Sprint(p.self.ID, "-", sent[p.self.ID])))) })
	}
}

// scenario has members broadcast at certain steps, and others die.
func scenario(t *testing.T, seed uint64, deaths map[int]*int) (steps int) {
	m := newModel(t, 2, 3, seed, 1<<20)
	sent := map[string]int{}
	origins := []int{0, 101, 0, 2, 102, 1, 100}
	quiet := false
	for step := 0; !quiet || step < 60; step++ {
		if step%8 == 0 && step/8 < len(origins) {
			m.broadcast(m.findID(idOf(origins[step/8])), sent)
		}
		if rank := deaths[step]; rank != nil {
			if p := m.find(*rank); p != nil {
				m.kill(p)
			}
		}
		quiet = !m.step()
		if step > 10000 {
			t.Fatalf("no end: seed %d, deaths %s", seed, describe(deaths))
		}
		steps = step
	}
	m.check(fmt.Sprintf("seed %d, deaths %v", seed, describe(deaths)), sent)
	return steps
}

func idOf(rank int) string { return fmt.Sprint(string(rune('a'+rank/100)), rank%100) }

func describe(deaths map[int]*int) string {
	text := ""
	for step, rank := range deaths {
		text += fmt.Sprintf("%s at step %d ", idOf(*rank), step)
	}
	return text
}

var modelRanks = []int{0, 1, 2, 100, 101, 102}

// modelSteps is how many steps the messages of a scenario take, about; after that only
// summaries and watermarks are exchanged.
const modelSteps = 140

// Two zones of three members, all of them delegates: every one of them dies at every step,
// under several schedules. The machines have no goroutines, so the race detector sees one
// schedule.
func TestEveryDelegateDiesAtEveryStep(t *testing.T) {
	runs, schedules := 0, uint64(3)
	if testutil.RaceEnabled {
		schedules = 1
	}
	for _, first := range modelRanks {
		for at := range modelSteps {
			for seed := range schedules {
				scenario(t, seed, map[int]*int{at: &first})
				runs++
			}
		}
	}
	t.Log(runs, "runs")
}

// Every two of them die, at some steps of all; with PLEACH_FULL at more.
func TestEveryTwoDelegatesDie(t *testing.T) {
	stride := 17
	switch {
	case testutil.Full.On():
		stride = 3
	case testutil.RaceEnabled:
		stride = 61
	}
	runs := 0
	for i, first := range modelRanks {
		for _, second := range modelRanks[i+1:] {
			for at := 0; at < modelSteps; at += stride {
				for then := 1; then < modelSteps; then += stride {
					scenario(t, uint64(at), map[int]*int{at: &first, at + then: &second})
					runs++
				}
			}
		}
	}
	t.Log(runs, "runs")
}

// A lead dies when only a gateway has its last message, which arrives there after the next
// lead has asked for positions. The gateway learns of the death before the message arrives,
// or after it. In both cases the lead's own zone gets the message back.
func TestLastMessageOfDeadLeadComesBack(t *testing.T) {
	for _, early := range []bool{false, true} {
		m := newModel(t, 2, 3, 1, 1<<20)
		sent := map[string]int{}
		lead := m.findID("a0")
		m.broadcast(lead, sent)
		last := m.sends
		m.sends = nil
		m.kill(lead)
		m.takeViews(4) // zone a has removed it, and knows that it is not in the backbone
		for len(m.sends) > 0 {
			m.deliverSend(m.sends[0]) // the next lead asks, and is answered
		}
		if early {
			m.drainViews()
		}
		for _, s := range last {
			m.deliverSend(s)
		}
		m.run()
		m.check(fmt.Sprint("early ", early), sent)
		for _, p := range m.alive("") {
			if len(p.got) != 1 {
				t.Errorf("early %v: %s got %q", early, p.self.ID, p.got)
			}
		}
	}
}

// cutZone takes a zone out of the backbone, or back in.
func (m *model) cutZone(zone string, cut bool) {
	for _, p := range m.alive(zone) {
		p.cut = cut
	}
	m.sends = slices.DeleteFunc(m.sends, func(s *modelSend) bool { return s.from.cut != s.to.cut })
	m.backboneView()
}

// A zone that was cut off gets what was broadcast meanwhile, in both directions, and also
// what the origin's zone cannot ship any more because it is dead.
func TestZoneThatWasCutOffCatchesUp(t *testing.T) {
	seeds := uint64(100)
	if testutil.RaceEnabled {
		seeds = 10
	}
	for seed := range seeds {
		m := newModel(t, 3, 3, seed, 1<<20)
		sent := map[string]int{}
		all := func() {
			for _, id := range []string{"a0", "a1", "b0", "c2"} {
				m.broadcast(m.findID(id), sent)
			}
		}
		all()
		m.run()
		m.cutZone("c", true)
		all()
		m.limit += 60 * modelStall
		m.run()
		for _, p := range m.alive("b") {
			m.kill(p)
		}
		m.run()
		m.cutZone("c", false)
		all()
		m.limit += 60 * modelStall
		m.run()
		m.check(fmt.Sprint("seed ", seed), sent)
	}
}

// leads counts the members of a zone that ship.
func (m *model) leads(zone string) (n int) {
	for _, p := range m.alive(zone) {
		if p.Lead() {
			n++
		}
	}
	return n
}

// If the lead does not get on, all delegates ship in the end. When it gets on again, they
// stop, although their own watermarks are as good, and are more patient the next time.
func TestOneLeadRemains(t *testing.T) {
	for seed := range uint64(20) {
		m := newModel(t, 2, 3, seed, 1<<20)
		sent := map[string]int{}
		slow := func(silence Time) {
			for end := m.now + silence; m.now < end; m.now += 20 {
				m.sends = nil // nothing crosses
				for _, p := range m.alive("") {
					m.do(p, func() { p.Tick(m.now) })
				}
				for len(m.casts) > 0 {
					m.deliverCast(m.casts[0], m.casts[0].to[0])
				}
			}
			m.limit = m.now + 20*modelStall
		}
		m.broadcast(m.findID("a0"), sent)
		slow(3 * modelStall)
		if n := m.leads("a"); n != 3 {
			t.Fatalf("seed %d: %d delegates ship although nothing is acknowledged", seed, n)
		}
		for range 10 {
			m.broadcast(m.findID("a0"), sent)
			m.run()
		}
		if n := m.leads("a"); n != 1 {
			t.Fatalf("seed %d: %d delegates ship although the first one gets on", seed, n)
		}
		m.check(fmt.Sprint("seed ", seed), sent)
		m.broadcast(m.findID("a0"), sent)
		slow(modelStall + modelStall/2)
		if n := m.leads("a"); n != 1 {
			t.Fatalf("seed %d: %d delegates ship, and are as impatient as before", seed, n)
		}
	}
}

// copies counts the messages that were sent between zones, those of dead members included.
func (m *model) copies() (n uint64) {
	for _, p := range m.members {
		n += p.Counts().Data
	}
	return n
}

// The messages of a zone that dies are shipped by all others, but only those that a zone
// lacks: also if a lead asks that knows of the death before the gateway, or after it.
func TestDeadZoneIsNotShippedAgain(t *testing.T) {
	for seed := range uint64(100) {
		m := newModel(t, 4, 3, seed, 1<<20)
		sent := map[string]int{}
		for range 20 {
			m.broadcast(m.findID("b1"), sent)
			m.broadcast(m.findID("c1"), sent)
		}
		m.limit += 60 * modelStall
		m.run()
		before := m.copies()
		m.kill(m.findID("a0")) // its successor asks, before or after it knows of the death
		for range seed {
			m.step()
		}
		for _, p := range m.alive("b") {
			m.kill(p)
		}
		m.limit += 60 * modelStall
		m.run()
		if again := m.copies() - before; again > 0 {
			t.Fatalf("seed %d: %d messages that all zones have were shipped", seed, again)
		}
		m.check(fmt.Sprint("seed ", seed), sent)
	}
}

// A zone that was cut off gets the messages of another one that has died and begun again
// before it is back: the new life knows nothing of them, but other zones do.
func TestZoneCatchesUpWithFormerLife(t *testing.T) {
	for seed := range uint64(50) {
		m := newModel(t, 4, 3, seed, 1<<20)
		sent := map[string]int{}
		m.broadcast(m.findID("b1"), sent)
		m.run()
		m.cutZone("d", true)
		for range 3 {
			m.broadcast(m.findID("b1"), sent)
		}
		m.limit += 60 * modelStall
		m.run()
		for _, p := range m.alive("b") {
			m.kill(p)
		}
		if seed%2 > 0 {
			m.run() // the others see that it is gone
		}
		again := m.start("b", 1, 50)
		m.zoneView("b")
		m.backboneView()
		m.limit += 60 * modelStall
		m.run()
		m.cutZone("d", false)
		m.limit += 60 * modelStall
		m.run()
		for _, p := range m.alive("") {
			if p != again && len(p.got) != sent["b1"] {
				t.Fatalf("seed %d: %s got %q", seed, p.self.ID, p.got)
			}
		}
		if len(again.got) > 0 {
			t.Fatalf("seed %d: a zone that has begun again got %q", seed, again.got)
		}
	}
}

// What a zone has missed of another one that is dead now is shipped to it by one of the
// others, not by all.
func TestOneZoneShipsForDeadOne(t *testing.T) {
	const n = 20
	for seed := range uint64(50) {
		m := newModel(t, 6, 3, seed, 1<<20)
		sent := map[string]int{}
		m.cutZone("e", true)
		for range n {
			m.broadcast(m.findID("b1"), sent)
		}
		m.limit += 60 * modelStall
		m.run()
		for _, p := range m.alive("b") {
			m.kill(p)
		}
		m.run()
		before := m.copies()
		m.cutZone("e", false)
		m.limit += 60 * modelStall
		m.run()
		if copies := m.copies() - before; copies != n {
			t.Fatalf("seed %d: %d messages were shipped, %d are missing", seed, copies, n)
		}
		m.check(fmt.Sprint("seed ", seed), sent)
	}
}

// A zone that was cut off for longer than others keep messages gets a notice in their place,
// and then the rest.
func TestZoneIsToldWhatItHasMissed(t *testing.T) {
	m := newModel(t, 2, 3, 1, 20*entryOverhead)
	sent := map[string]int{}
	m.broadcast(m.findID("a0"), sent)
	m.run()
	m.cutZone("b", true)
	m.drainViews()
	for range 50 {
		m.broadcast(m.findID("a0"), sent)
		m.limit += modelStall
		m.run()
	}
	m.cutZone("b", false)
	m.limit += 60 * modelStall
	m.run()
	for _, p := range m.alive("b") {
		if len(p.got) < 3 || p.got[0] != "a0 1 a0-1" || p.got[len(p.got)-1] != "a0 51 a0-51" {
			t.Fatalf("%s got %q", p.self.ID, p.got)
		}
		var lost int
		if n, _ := fmt.Sscanf(p.got[1], "a0 lost %d", &lost); n != 1 || lost+len(p.got)-1 != 51 {
			t.Fatalf("%s got %q: %d lost", p.self.ID, p.got, lost)
		}
	}
}

// A zone that begins later than others has only the last messages of an origin. When the
// origin's zone is gone, it ships those, and does not call the others lost, which another
// zone may ship. If no zone does, the lead that waits for them tells its zone in the end.
func TestMessagesOfDeadZoneAreNotLostTooEarly(t *testing.T) {
	dead := Origin{"b", "x", 1}
	start := func(zone string) *Machine {
		m := New(Config{
			Self: Origin{zone, "self", 1}, KeepBytes: 1 << 12, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall,
			GapDelay: 500, AckDelay: 10, AckBytes: 1 << 15, WatermarkDelay: 10,
		})
		m.Begin(1)
		m.SetZone(1, []Sibling{{0, 0}}, 0)
		return m
	}
	peers := []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "c"}}
	take := func(m *Machine, f *frame) {
		if err := m.FromPeer(2, 1, f.encode()); err != nil {
			t.Fatal(err)
		}
	}
	var lost []byte // the notice that another zone gets
	late := start("a")
	take(late, &frame{kind: kindBase, zone: "b", positions: []position{{Origin: dead, Seq: 2}}})
	take(late, &frame{kind: kindData, origin: dead, seq: 3, data: []byte("3")})
	late.SetBackbone(2, peers)
	late.Actions()
	take(late, &frame{
		kind: kindReply, zone: "c", zones: []string{"a", "b"}, covers: []string{"a", "b"},
		positions: []position{{Origin: dead, Seq: 1}},
	})
	for _, a := range late.Actions() {
		if s, ok := a.(Send); ok && kindOf(s.Frame) == kindLost {
			lost = s.Frame
		}
	}
	if late.Counts().Data != 2 || lost == nil {
		t.Errorf("%d messages and notices shipped, not one of each", late.Counts().Data)
	}

	waits := start("a")
	take(waits, &frame{kind: kindBase, zone: "b"})
	take(waits, &frame{kind: kindData, origin: dead, seq: 3, data: []byte("3")})
	waits.SetBackbone(2, peers)
	if err := waits.FromPeer(2, 1, lost); err != nil {
		t.Fatal(err)
	}
	var got []Message
	for now := Time(2); now <= (giveUpAfter+1)*modelStall && len(got) == 0; now += 100 {
		waits.Tick(now)
		for _, msg := range waits.Delivered() {
			if now < giveUpAfter*modelStall {
				t.Fatalf("%v at %d", msg, now)
			}
			got = append(got, msg)
		}
	}
	if len(got) != 2 || got[0].Lost != 2 || got[1].Seq != 3 {
		t.Errorf("delivered %v", got)
	}
}

// A zone whose members have all died begins again without the messages of its former life,
// which others know.
func TestZoneBeginsAgainWithoutItsPast(t *testing.T) {
	const sync, gateway = 1, 2 // ranks
	former := Origin{"b", "x", 3}
	m := New(Config{Self: Origin{"a", "self", 1}, KeepBytes: 1 << 12, MaxOrigins: 10, Window: 1 << 20, Stall: modelStall})
	m.Begin(1)
	m.SetZone(1, []Sibling{{0, 0}}, 0)
	m.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}, {Rank: sync, Zone: "b"}})
	for _, f := range []*frame{
		{kind: kindBase, zone: "b"},
		{kind: kindData, origin: former, seq: 1, data: []byte("1")},
		{kind: kindSync, zone: "b", zones: []string{"b"}, covers: []string{"b"}, born: 5},
	} {
		if err := m.FromPeer(2, sync, f.encode()); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.Counts().Data; n > 0 {
		t.Errorf("%d messages of its former life were shipped to a zone", n)
	}
	again := New(Config{
		Self: Origin{"b", "self", 1}, Born: 5, KeepBytes: 1 << 12, MaxOrigins: 10, Window: 1 << 20,
		Stall: modelStall,
	})
	again.Begin(1)
	again.SetZone(1, []Sibling{{0, 0}}, 0)
	again.SetBackbone(1, []Peer{{Rank: gateway, Zone: "a"}, {Rank: 0, Zone: "b"}})
	asked := again.Counts().Syncs
	ack := frame{kind: kindAck, zone: "a", positions: []position{{Origin: former, Seq: 1}}}
	if err := again.FromPeer(2, gateway, ack.encode()); err != nil {
		t.Fatal(err)
	}
	if asked != 1 || again.Counts().Syncs != asked {
		t.Errorf("%d questions for positions, %d after an acknowledgment of a former life", asked, again.Counts().Syncs)
	}
}

// The incarnation of a member follows from when its zone was begun, and from the number
// that the zone has given it. Its own clock does not matter: a member whose clock is late
// must not seem to be of a former life of its zone.
func TestIncarnationsFollowTheZone(t *testing.T) {
	first := New(Config{Self: Origin{"a", "first", 1}, Born: 1000, KeepBytes: 1 << 20, MaxOrigins: 10})
	first.Begin(1)
	for _, number := range []uint64{7, 8} { // started again
		late := New(Config{Self: Origin{"a", "late", number}, Born: 5, KeepBytes: 1 << 20, MaxOrigins: 10})
		table := tableFor(t, first, late)
		if err := late.Join(1, table); err != nil {
			t.Fatal(err)
		}
		if late.self.Incarnation != 1000+number || late.Born() != 1000 || late.former(late.self) {
			t.Errorf("incarnation %d of a zone begun at %d", late.self.Incarnation, late.Born())
		}
	}
}

// A delegate leads although an older one has not entered the backbone yet.
func TestDelegateInBackboneLeads(t *testing.T) {
	m := New(Config{Self: Origin{"a", "self", 1}, MaxOrigins: 10, Stall: modelStall})
	m.Begin(1)
	m.SetZone(1, []Sibling{{0, 10}, {1, 11}}, 1)
	peers := []Peer{{Rank: 5, Zone: "a", Age: 11}, {Rank: 6, Zone: "b"}}
	m.SetBackbone(1, peers)
	if !m.Lead() {
		t.Error("a delegate waits for one that is not in the backbone")
	}
	m.SetBackbone(2, append(peers, Peer{Rank: 7, Zone: "a", Age: 10}))
	if m.Lead() {
		t.Error("a delegate ships although an older one has entered the backbone")
	}
	m.SetZone(3, []Sibling{{1, 11}}, 1)
	if !m.Lead() {
		t.Error("a delegate waits for one that its zone has removed")
	}
}

// The log is bounded, and so are the origins.
func TestLogIsBounded(t *testing.T) {
	m := New(Config{Self: Origin{"a", "self", 1}, KeepBytes: 1 << 12, MaxOrigins: 10})
	m.Begin(1)
	for i := range 1000 {
		o := Origin{"a", fmt.Sprint(i % 20), 1}
		f := frame{kind: kindData, origin: o, seq: uint64(i/20 + 1), data: make([]byte, 100)}
		if err := m.FromZone(Time(i+1), 0, f.encode()); err != nil {
			t.Fatal(err)
		}
	}
	if m.keptBytes > 1<<12 || m.heldBytes > 1<<12 || len(m.streams) > 10 || len(m.sorted) > 10 || len(m.gaps) > 10 {
		t.Errorf("%d and %d bytes, %d streams, %d origins, %d gaps", m.keptBytes, m.heldBytes, len(m.streams), len(m.sorted),
			len(m.gaps))
	}
	kept := 0
	for _, s := range m.streams {
		for i := range s.log.Len() {
			kept += s.log.At(i).cost()
		}
	}
	if kept != m.keptBytes || m.kept.Len() != kept/(100+entryOverhead) {
		t.Errorf("%d bytes are kept, and %d counted, in %d entries", kept, m.keptBytes, m.kept.Len())
	}
}

// tableFor returns what a member answers to one that has joined. It does so only after it
// has read its hello, and so all that was broadcast before that.
func tableFor(t *testing.T, m, joiner *Machine) []byte {
	t.Helper()
	if _, err := m.Serve(joiner.TableRequest()); err == nil {
		t.Error("a member has answered a joiner that it has read nothing of")
	}
	if err := m.FromZone(1, 5, joiner.Hello()); err != nil {
		t.Fatal(err)
	}
	table, err := m.Serve(joiner.TableRequest())
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A process that joins gets positions and the end of the log, and neither delivers what was
// before nor misses what comes.
func TestJoinerBeginsWhereTheZoneIs(t *testing.T) {
	old := New(Config{Self: Origin{"a", "old", 1}, KeepBytes: 1 << 20, MaxOrigins: 10})
	old.Begin(1)
	for range 3 {
		old.Broadcast(2, "", []byte("x"))
	}
	joiner := New(Config{Self: Origin{"a", "new", 1}, KeepBytes: 1 << 20, MaxOrigins: 10})
	table := tableFor(t, old, joiner)
	if err := joiner.FromZone(3, 0, old.Broadcast(3, "", []byte("y"))); err != nil {
		t.Fatal(err)
	}
	if err := joiner.Join(4, table); err != nil {
		t.Fatal(err)
	}
	got := joiner.Delivered()
	if len(got) != 1 || got[0].Seq != 4 || joiner.streams[old.self].log.Len() != 4 {
		t.Errorf("%v, log %v", got, joiner.streams[old.self])
	}
	if _, err := New(Config{MaxOrigins: 1}).Serve(joiner.TableRequest()); err == nil {
		t.Error("a member that waits for a table itself has answered")
	}
}

// Bytes from other processes are checked.
func FuzzFrame(f *testing.F) {
	for k := kindData; k <= kindHello; k++ {
		one := frame{
			kind: k, zone: "z", zones: []string{"a"}, covers: []string{"b"}, born: 7,
			positions: []position{{Origin{"a", "b", 3}, 4, 5}}, origin: Origin{"a", "b", 3}, seq: 6, data: []byte("d"),
			summaries: []Summary{{Zone: "a", Members: 3, View: 4, Healthy: true}},
		}
		f.Add(one.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if one, err := decode(b); err == nil {
			again, err := decode(one.append(nil))
			if err != nil || !bytes.Equal(again.append(nil), one.append(nil)) {
				t.Errorf("%x: %+v is %+v, %v", b, one, again, err)
			}
		}
		m := New(Config{Self: Origin{"a", "self", 1}, KeepBytes: 1 << 12, MaxOrigins: 10})
		m.Begin(1)
		m.SetZone(1, []Sibling{{0, 0}, {1, 1}}, 0)
		m.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}})
		_ = m.FromZone(2, 1, withLength(b))
		_ = m.FromPeer(3, 1, withLength(b))
		_, _ = m.Serve(b)
		_ = m.Fetched(4, withLength(b))
	})
}
