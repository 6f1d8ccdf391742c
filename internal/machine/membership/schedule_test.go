package membership

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Random schedules: groups of 5 to 40 with crashes, restarts, partitions that
// heal, cuts in one direction, lost and late frames, wrong suspicions, herds that
// join, second processes with the identity of a live one, leaves and changes of meta, while
// messages are sent. Whatever happens, the checker has nothing to complain of; and once it stops,
// all who live come to agree.
//
// PLEACH_SEEDS=n runs n of them, PLEACH_FIRST=s those from seed s on, and
// PLEACH_SEED=s just that one.
func TestRandomSchedules(t *testing.T) {
	if testutil.Seed.On() {
		runSchedule(t, uint64(testutil.Seed.Or(0)))
		return
	}
	schedules := 1500
	if testutil.RaceEnabled || testing.Short() {
		schedules = 300
	}
	first, count := uint64(testutil.First.Or(0)), uint64(testutil.Seeds.Or(schedules))
	var total totals
	const shards = 4
	t.Run("shards", func(t *testing.T) {
		results := make([]totals, shards)
		t.Cleanup(func() {
			for _, r := range results {
				total.add(r)
			}
		})
		for s := range uint64(shards) {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				for seed := s; seed < count && !t.Failed(); seed += shards {
					results[s].add(runSchedule(t, first+seed))
				}
			})
		}
	})
	t.Logf("%d schedules from seed %d: %+v", count, first, total)
}

// totals says how much has been tried.
type totals struct {
	Views, Crashes, Evictions, Frames, Messages, Stuck int
}

func (t *totals) add(o totals) {
	t.Views += o.Views
	t.Crashes += o.Crashes
	t.Evictions += o.Evictions
	t.Frames += o.Frames
	t.Messages += o.Messages
	t.Stuck += o.Stuck
}

// runSchedule runs one, and once more to tell what happened if it fails.
func runSchedule(t *testing.T, seed uint64) totals {
	s := newSchedule(t, seed)
	err := s.run()
	if err == nil {
		return s.totals
	}
	again := newSchedule(t, seed)
	again.n.verbose = true
	_ = again.run()
	log := again.n.log
	log = log[max(0, len(log)-400):]
	t.Errorf("%v\n%s\n%s\nreplay: PLEACH_SEED=%d go test -run TestRandomSchedules ./membership",
		err, strings.Join(log, "\n"), again.n.situation(), seed)
	return s.totals
}

// Seeds that have failed once, of a million.
func TestSeedsThatFailed(t *testing.T) {
	for seed, why := range map[uint64]string{
		64479:  "a host that wanted to leave was started again by the test",
		625614: "the last one left, as it wished, a view with many holes: compacted, it had no place for it",
	} {
		t.Run(why, func(t *testing.T) { runSchedule(t, seed) })
	}
}

// schedule is one random run.
type schedule struct {
	n      *network
	cuts   map[[2]int]bool // who cannot reach whom
	side   map[int]int     // of the partition
	healed bool
	totals totals

	seed      uint64
	observers bool // members are voters and observers, and change
	impaired  int  // how often impair has run
}

func newSchedule(t *testing.T, seed uint64) *schedule {
	return newScheduleOf(t, seed, func(*Config) {})
}

// newScheduleOf is newSchedule with a change of all configs, to plant a bug.
func newScheduleOf(t *testing.T, seed uint64, change func(*Config)) *schedule {
	size := 5 + int(seed%7)
	if seed%8 == 0 {
		size = 5 + int(seed/8%36)
	}
	// Along the tree, without one, and sometimes this, sometimes that; with and without relays.
	flat := []int{-1, DefaultFlatThreshold, 10}[seed/56%3]
	relays := [][]int{nil, {2}, {5, 2}, {7, 4}}[seed/168%4]
	v, observers := firstView(size), seed%3 == 2
	if observers {
		v = drawObservers(v, rand.New(rand.NewPCG(seed, 2)))
	}
	n := newNetworkOf(t, v, seed, func(c *Config) {
		c.JoinTimeout, c.FlatThreshold, c.relays = 3*second, flat, relays
		if seed%5 == 1 { // silence counts before all heals
			c.AttemptTimeout, c.AckTimeout = 50*millisecond, 200*millisecond
		}
		change(c)
	})
	n.rejoin = true
	n.detect = 10*time.Millisecond + time.Duration(n.rng.Int64N(int64(90*time.Millisecond)))
	n.drop = []float64{0, 0, 0.02, 0.2}[n.rng.IntN(4)]
	n.jitter = []time.Duration{100 * time.Microsecond, 5 * time.Millisecond, 80 * time.Millisecond}[n.rng.IntN(3)]
	s := &schedule{n: n, cuts: map[[2]int]bool{}, side: map[int]int{}, seed: seed, observers: observers}
	n.blocked = func(from, to *host) bool {
		return len(s.side) > 0 && s.side[from.id] != s.side[to.id] || len(s.cuts) > 0 && s.cuts[[2]int{from.id, to.id}]
	}
	trouble := []float64{0, 0.003, 0.02}[n.rng.IntN(3)]
	n.spy = func(from *host, kind Kind) {
		if !s.healed && kind >= Prepare && n.rng.Float64() < trouble {
			s.disturb(from)
		}
	}
	return s
}

// drawObservers makes members of a view observers: few or most, but not all.
func drawObservers(v View, rng *rand.Rand) View {
	var ranks []protocol.Rank
	for _, r := range rng.Perm(v.Members.Len())[:rng.IntN(v.Members.Len())] {
		ranks = append(ranks, protocol.Rank(r))
	}
	return withObservers(v, ranks...)
}

// disturb lets a member die in the midst of a change, while it sends, or be
// suspected for no reason.
func (s *schedule) disturb(h *host) {
	n := s.n
	if by := s.any(); n.rng.IntN(2) == 0 {
		n.after(1, func() { s.mistrust(by, h) })
	} else {
		s.crash(h)
	}
}

// crash ends a process, unless that would stop the group for good.
func (s *schedule) crash(h *host) {
	if !h.live() {
		return
	}
	h.dead = true
	if !s.n.disks && !s.alive() {
		h.dead = false
		return
	}
	s.totals.Crashes++
	s.n.logf("%s dies", who(h.self))
}

// mistrust has a member suspect another that may well live.
func (s *schedule) mistrust(by, h *host) {
	if by.live() && h.live() && by != h && by.m.view.Holds(h.self.Rank, h.self.Incarnation) {
		s.n.suspect(by, h.self)
		by.reply = nil
		s.n.pump(by)
	}
}

// run lets things happen, then heals everything and waits for agreement.
func (s *schedule) run() error {
	n := s.n
	for range 5 + n.rng.IntN(15) {
		n.run(time.Duration(n.rng.Int64N(int64(120*time.Millisecond))), nil)
		s.happen()
		s.changeRole()
		s.impair()
		s.talk()
	}
	n.logf("all heals")
	s.healed, s.cuts, s.side = true, map[[2]int]bool{}, map[int]int{}
	n.drop, n.jitter = 0, min(n.jitter, 5*time.Millisecond)
	agreed := n.run(time.Minute, n.agreed)
	s.totals.Views += len(n.checker.views)
	s.totals.Evictions = n.evictions
	for _, f := range n.frames {
		s.totals.Frames += f
	}
	switch {
	case n.failure != nil:
		return n.failure
	case !agreed && s.alive():
		return fmt.Errorf("no agreement a minute after the last fault")
	case !agreed:
		s.totals.Stuck++ // too many died at once: nobody may go on
	}
	return nil
}

// impair has the coordinator lack the means to reach others, in some runs, or have them
// again, to the end if it is so then.
func (s *schedule) impair() {
	if s.seed%4 != 3 {
		return
	}
	h := s.n.hosts[s.impaired%2]
	s.impaired++
	if h.live() {
		h.m.SetImpaired(!h.m.impaired)
	}
}

// changeRole has a member ask to be an observer, or a voter, or a process that is not a member yet
// come as another.
func (s *schedule) changeRole() {
	if !s.observers {
		return
	}
	n, h := s.n, s.any()
	switch {
	case n.rng.IntN(12) == 0:
		n.logf("all observers die")
		for _, o := range n.hosts {
			if o.live() && o.m.view.Members.At(o.m.self).Observer {
				s.crash(o)
			}
		}
	case n.rng.IntN(3) > 0 || h.left:
	case h.live():
		h.reply = nil
		err := h.m.SetObserver(n.now, n.rng.IntN(2) == 0)
		n.logf("%s changes its role: %v", who(h.self), err)
		n.pump(h)
	case h.m == nil:
		h.self.Observer = !h.self.Observer
	}
}

func (s *schedule) any() *host { return s.n.hosts[s.n.rng.IntN(len(s.n.hosts))] }

// happen lets one thing happen.
func (s *schedule) happen() {
	n := s.n
	h := s.any()
	switch n.rng.IntN(13) {
	case 0, 1:
		s.crash(h)
	case 2, 3:
		if h.dead && !h.left && !h.refused {
			n.restart(h)
		}
	case 4:
		for _, h := range n.hosts {
			s.side[h.id] = n.rng.IntN(2)
		}
		n.logf("partition %v", s.side)
	case 5:
		n.logf("heal")
		s.side = map[int]int{}
	case 6:
		to := s.any()
		n.logf("%s is cut from %s", who(to.self), who(h.self))
		s.cuts[[2]int{h.id, to.id}] = true
	case 7:
		s.cuts = map[[2]int]bool{}
	case 8:
		s.mistrust(s.any(), h)
	case 9:
		if len(n.hosts) < 60 {
			for i := range 1 + n.rng.IntN(4) {
				h := n.join(fmt.Sprint("new", len(n.hosts)), []string{"", "a", "b"}[i%3])
				h.self.Observer = s.observers && n.rng.IntN(2) == 0
			}
		}
	case 10:
		if h.live() && n.rng.IntN(3) == 0 {
			n.leave(h)
		} else if h.live() {
			n.setMeta(h, fmt.Sprint(n.now))
		}
	case 11:
		if !h.refused && !h.left && len(n.hosts) < 60 {
			n.copyOf(h)
		}
	default:
		s.herd()
	}
}

// herd lets many join at once, now and then.
func (s *schedule) herd() {
	if len(s.n.hosts) < 20 && s.n.rng.IntN(4) == 0 {
		for range 15 {
			s.n.join(fmt.Sprint("herd", len(s.n.hosts)), "")
		}
	}
}

// talk lets some send messages. Some die over it, when one other has the message.
func (s *schedule) talk() {
	rng := s.n.rng
	for range rng.IntN(6) {
		h := s.any()
		if !h.live() || !h.log.send() {
			continue
		}
		s.totals.Messages++
		dies := rng.IntN(8) == 0
		if out := h.log.out; dies && len(out) > 0 {
			h.log.out = []outgoing{out[rng.IntN(len(out))]}
		}
		h.reply = nil
		s.n.pump(h)
		if dies {
			s.crash(h)
		}
	}
}

// alive reports whether a majority lives of the last views that anybody is in:
// otherwise the group has stopped for good, as it should.
func (s *schedule) alive() bool {
	var last uint64
	for number := range s.n.checker.views {
		last = max(last, number)
	}
	for number := last; number > 0 && number+3 > last; number-- {
		v, ok := s.n.checker.views[number]
		if !ok {
			continue
		}
		living := newSet(v.Members.Len())
		for _, h := range s.n.hosts {
			if i := v.identity(h.self.Identity); i >= 0 && !h.dead && h.is(v.Members.At(i)) && (h.m == nil || h.m.done == nil) {
				living.add(i)
			}
		}
		if countsMost(&v, living) {
			continue
		}
		return false
	}
	return true
}
