package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/fleet"
	"github.com/pleach-go/pleach/lab/bench"
)

// Times of a run.
const (
	startTimeout = 3 * time.Minute
	drainTimeout = time.Minute
	restartDelay = time.Second
	parallel     = 4 // zones that are started at a time
)

// run is one measurement.
type run struct {
	config Config
	wan    *wan
	ledger *ledger
	rng    *rand.Rand
	ending sync.WaitGroup

	mu               sync.Mutex // guards the rest
	sites            []*site
	spared           map[*site]bool // no delegate of it is killed now
	kills, restarted int
	evicted          int
	sent             fleet.Stats // since the zones have met
	err              error
}

// Run starts a fleet, injects faults, and checks what its members receive.
func Run(ctx context.Context, c Config) (result Result, err error) {
	if err := c.Check(); err != nil {
		return result, err
	}
	r := &run{
		config: c, wan: newWAN(c.Delay), ledger: newLedger(), rng: rand.New(rand.NewPCG(c.Seed, 1)),
		spared: make(map[*site]bool),
	}
	for i := range c.Zones {
		s := &site{name: zoneName(i), host: host(i), used: make(map[string]bool)}
		if err := s.reserve(c.Members); err != nil {
			return result, fmt.Errorf("bench: %w", err)
		}
		r.sites = append(r.sites, s)
	}
	defer r.close()
	r.progress(0, "start")
	if err := r.start(ctx); err != nil {
		return result, err
	}
	r.progress(1, "zones meet")
	if err := r.meet(ctx); err != nil {
		return result, err
	}
	r.progress(2, "broadcasts")
	for _, m := range r.live() {
		m.before = m.Stats()
	}
	bytes, began := r.wan.bytes.Load(), time.Now()
	r.broadcasts(ctx)
	seconds := time.Since(began).Seconds()
	result.WANBytes = bench.Round(float64(r.wan.bytes.Load()-bytes)/seconds, 0)
	r.progress(3, "drain")
	drained, err := r.drain(ctx)
	if err != nil {
		return result, err
	}
	r.report(&result)
	result.DrainMS = bench.Millis(drained)
	result.PerOrigin = bench.Round(float64(result.Broadcasts)/seconds/float64(c.Zones*c.Members), 0)
	if c.full() && r.err == nil {
		r.progress(4, "one group")
		r.close()
		err = r.oneGroup(ctx, &result)
	}
	return result, errors.Join(r.err, err, ctx.Err())
}

func (r *run) progress(done int, what string) {
	if r.config.Progress != nil {
		r.config.Progress(done, what)
	}
}

// note keeps the first error.
func (r *run) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// start starts all zones, some at a time, and the members of each at once after the first.
func (r *run) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, s := range r.sites { // so that every process has seeds of every zone
		if _, err := r.join(ctx, s, true); err != nil {
			return err
		}
	}
	slots := make(chan struct{}, parallel)
	errs := make([]error, len(r.sites))
	var starting sync.WaitGroup
	for i, s := range r.sites {
		starting.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = r.fill(ctx, s, true)
		})
	}
	starting.Wait()
	return errors.Join(errs...)
}

// fill starts all members of a zone but the first, at once.
func (r *run) fill(ctx context.Context, s *site, began bool) error {
	var joining sync.WaitGroup
	errs := make([]error, r.config.Members-1)
	for i := range errs {
		joining.Go(func() { _, errs[i] = r.join(ctx, s, began) })
	}
	joining.Wait()
	return errors.Join(errs...)
}

// live returns the live members of all zones.
func (r *run) live() (list []*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sites {
		list = append(list, s.members...)
	}
	return list
}

// meet waits until the zones have met: a member of each sends greetings until all members
// have received one of each zone.
func (r *run) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !r.met() {
		for _, s := range r.sites {
			if m := r.greeter(s); m != nil && r.ledger.note(m.origin) {
				_ = m.Broadcast(ctx, []byte("hello"))
			}
		}
		if !rest(ctx, 500*time.Millisecond) {
			return fmt.Errorf("bench: the zones have not met: %w", ctx.Err())
		}
	}
	return nil
}

// greeter returns the member of a zone that sends greetings: one that has broadcast nothing
// else before.
func (r *run) greeter(s *site) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(s.members, func(m *member) bool { return m.greeter })
	if i < 0 {
		r.ledger.mu.Lock()
		defer r.ledger.mu.Unlock()
		for j, m := range s.members {
			if r.ledger.sent[m.origin] == 0 {
				i = j
			}
		}
	}
	if i < 0 && r.config.full() && len(s.members) > 0 {
		i = 0 // the zones have met before
	}
	if i < 0 {
		return nil
	}
	s.members[i].greeter = true
	return s.members[i]
}

func (r *run) met() bool {
	return !slices.ContainsFunc(r.live(), func(m *member) bool {
		m.receipts.mu.Lock()
		defer m.receipts.mu.Unlock()
		m.receipts.hailed[m.zone] = true // its greeter does not hear itself
		return len(m.receipts.hailed) < len(r.sites)
	})
}

// rest waits, and reports whether ctx has not ended.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// broadcasts has members broadcast while faults are injected.
func (r *run) broadcasts(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Time)
	defer cancel()
	var trouble sync.WaitGroup
	trouble.Go(func() { r.killDelegates(ctx) })
	trouble.Go(func() { r.cutZone(ctx) })
	trouble.Go(func() { r.killZone(ctx) })
	var sending sync.WaitGroup
	if r.config.full() {
		r.fullRate(ctx, &sending)
	} else {
		r.steadyRate(ctx, &sending)
	}
	trouble.Wait()
	for _, s := range r.sites {
		r.wan.setCut(s.host, false)
	}
	sending.Wait()
}

// steadyRate has random members broadcast.
func (r *run) steadyRate(ctx context.Context, sending *sync.WaitGroup) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / r.config.Rate))
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			if m := r.origin(); m != nil {
				sending.Go(func() { r.broadcast(context.WithoutCancel(ctx), m) })
			}
			if m := r.origin(); m != nil {
				sending.Go(func() { _ = m.Zone().Broadcast(ctx, r.payload()) })
			}
		case <-ctx.Done():
		}
	}
}

// origin chooses a member that broadcasts: one of two in the middle of a zone's list.
func (r *run) origin() *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sites[r.rng.IntN(len(r.sites))]
	members := slices.DeleteFunc(slices.Clone(s.members), func(m *member) bool { return m.greeter })
	if len(members) < 2 {
		return nil
	}
	return members[len(members)/2+r.rng.IntN(2)-1]
}

// killDelegates kills a delegate of a random zone again and again, and starts another
// process in its zone after a while.
func (r *run) killDelegates(ctx context.Context) {
	if r.config.Kill == 0 {
		return
	}
	for rest(ctx, r.config.Kill) {
		s, victim := r.victim()
		if victim == nil {
			continue
		}
		r.kill(s, victim)
		r.mu.Lock()
		r.kills++
		r.mu.Unlock()
		r.ending.Go(func() {
			if rest(ctx, restartDelay) && s.starting.TryLock() {
				defer s.starting.Unlock()
				r.restart(ctx, s)
			}
		})
	}
}

// restart starts another process in a zone.
func (r *run) restart(ctx context.Context, s *site) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	for !r.vacant(s, 1) && rest(ctx, restartDelay/100) {
		continue
	}
	if _, err := r.join(ctx, s, false); err != nil {
		r.note(fmt.Errorf("bench: restart in %s: %w", s.name, err))
		return
	}
	r.mu.Lock()
	r.restarted++
	r.mu.Unlock()
}

// vacant reports whether so many addresses of a zone are free.
func (r *run) vacant(s *site, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(s.addresses)-len(s.used) >= n
}

// victim chooses a delegate.
func (r *run) victim() (*site, *member) {
	r.mu.Lock()
	s := r.sites[r.rng.IntN(len(r.sites))]
	members, spared := slices.Clone(s.members), r.spared[s] || len(s.members) <= r.config.Members/2+1
	r.mu.Unlock()
	delegates := slices.DeleteFunc(members, func(m *member) bool { return !m.Stats().Delegate })
	if spared || len(delegates) == 0 {
		return s, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return s, delegates[r.rng.IntN(len(delegates))]
}

// spare keeps the delegates of a zone alive, or not any more.
func (r *run) spare(s *site, spared bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spared[s] = spared
}

// cutZone cuts a zone off after a while, and heals it.
func (r *run) cutZone(ctx context.Context) {
	s := r.sites[1%len(r.sites)]
	if r.config.Cut == 0 || !rest(ctx, r.config.Time/10) {
		return
	}
	r.wan.setCut(s.host, true)
	rest(ctx, r.config.Cut)
	r.wan.setCut(s.host, false)
}

// killZone kills all members of a zone, and starts others.
func (r *run) killZone(ctx context.Context) {
	s := r.sites[len(r.sites)-1]
	if r.config.Down == 0 || !rest(ctx, r.config.Time/3) {
		return
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	r.spare(s, true)
	r.mu.Lock()
	victims := slices.Clone(s.members)
	r.mu.Unlock()
	r.kill(s, victims...)
	rest(ctx, r.config.Down)
	again, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	for !r.vacant(s, r.config.Members) && rest(again, restartDelay/100) {
		continue
	}
	_, err := r.join(again, s, false)
	if err == nil {
		err = r.fill(again, s, false)
	}
	if err != nil {
		r.note(fmt.Errorf("bench: start of %s, which was dead: %w", s.name, err))
	}
	r.mu.Lock()
	r.restarted += len(s.members)
	r.mu.Unlock()
	r.spare(s, false)
}

// drain waits until all zones have met again, and all live members have everything.
func (r *run) drain(ctx context.Context) (time.Duration, error) {
	r.ending.Wait()
	began := time.Now()
	if err := r.meet(ctx); err != nil {
		return 0, err
	}
	for time.Since(began) < drainTimeout && r.ledger.missing(r.live()) > 0 && rest(ctx, 10*time.Millisecond) {
		continue
	}
	took := time.Since(began)
	rest(ctx, time.Second) // duplicates would come now
	return took, nil
}

func (r *run) report(result *Result) {
	for _, m := range r.live() {
		r.count(m)
	}
	missing := r.ledger.missing(r.live())
	l, c := r.ledger, &r.config
	l.mu.Lock()
	defer l.mu.Unlock()
	wan := result.WANBytes
	sum, late := l.totals()
	*result = sum
	slices.Sort(l.within)
	result.WANBytes = wan
	result.Zones, result.Members, result.DelayMS = c.Zones, c.Members, bench.Millis(c.Delay)
	result.Broadcasts, result.Lost = l.total, result.Lost+missing
	result.P50, result.P99 = bench.Millis(bench.Percentile(late, 50)), bench.Millis(bench.Percentile(late, 99))
	result.ZoneP50 = bench.Millis(bench.Percentile(l.within, 50))
	result.BoundMS = bench.Round(result.DelayMS+2*result.ZoneP50, 3)
	if result.ZoneP50 > 0 {
		result.Ratio = bench.Round(result.P50/result.BoundMS, 2)
	}
	if l.total > 0 {
		each := func(n uint64) float64 { return bench.Round(float64(n)/float64(l.total), 2) }
		result.WANMessages = each(r.sent.Messages + r.sent.Acks + r.sent.Syncs)
		result.WANCopies, result.WANAcks, result.WANSyncs = each(r.sent.Messages), each(r.sent.Acks), each(r.sent.Syncs)
	}
	result.Kills, result.Restarted, result.Evicted = r.kills, r.restarted, r.evicted
	result.CutS, result.DownS = c.Cut.Seconds(), c.Down.Seconds()
}

// close ends all processes.
func (r *run) close() {
	for _, s := range r.sites {
		r.mu.Lock()
		members := slices.Clone(s.members)
		r.mu.Unlock()
		r.kill(s, members...)
	}
	r.ending.Wait()
}
