package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// Messages before a footprint is taken, as the first ones open connections, and how
// long an idle group is watched.
const (
	firstMessages = 5
	idleTime      = 2 * time.Second
)

// Run measures all sizes of a config. If ctx ends first, it returns what was measured
// until then, with ctx's error. A size that would need more files than this process
// may open is left out; the error says so.
func Run(ctx context.Context, c Config) (results []Result, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var unfit error
	for i, members := range c.Members {
		if err := c.checkOpenFiles(members); err != nil {
			unfit = errors.Join(unfit, err)
			continue
		}
		s := &size{
			config: &c, members: members, rng: rand.New(rand.NewPCG(c.Seed, uint64(members))),
			progress: progress{config: &c, members: members, done: i * c.stepsOfSize()},
		}
		of, err := s.measure(ctx)
		results = append(results, of...)
		if err != nil {
			return results, errors.Join(unfit, err)
		}
	}
	return results, unfit
}

// size is a group of one size that is measured.
type size struct {
	config   *Config
	members  int
	rng      *rand.Rand
	progress progress
	group    *group
	result   Result // what does not depend on the kills
}

// measure takes all steps. If ctx ends or one fails, it returns the results so far.
func (s *size) measure(ctx context.Context) (results []Result, err error) {
	s.result = Result{Members: s.members, Transport: s.config.Transport}
	s.progress.begin("start")
	before, began := bench.RestingFootprint(ctx), time.Now()
	s.group, err = startGroup(ctx, s.config.Transport, s.members)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.group.close()) }()
	s.result.StartMS = bench.Millis(time.Since(began))
	for _, step := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"first broadcasts", func(ctx context.Context) error { return s.weigh(ctx, before) }},
		{"idle", s.measureIdle},
		{"broadcasts", s.measureBroadcasts},
	} {
		s.progress.begin(step.name)
		if err := errors.Join(step.measure(ctx), ctx.Err()); err != nil {
			return nil, err
		}
	}
	for rank := range s.group.members {
		s.group.watch(rank)
	}
	for _, k := range s.config.Kills {
		dead := k.of(s.members)
		s.progress.begin(fmt.Sprintf("view change after %d deaths", dead))
		if !slices.ContainsFunc(results, func(r Result) bool { return r.Kills == dead }) { // 1% of few members is 1
			results = append(results, s.measureKills(ctx, dead))
		}
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
	}
	s.progress.begin("joins")
	err = s.measureJoins(ctx, results)
	for i := range results {
		results[i].OutOfFiles = s.group.network.outOfFiles()
	}
	s.progress.begin("end")
	return results, errors.Join(err, ctx.Err())
}

// share is the time of one step that may be repeated: broadcasts and each of the kills.
func (s *size) share() time.Duration { return s.config.Time / time.Duration(1+len(s.config.Kills)) }

// weigh counts what a member holds; before is what the process held without the group.
func (s *size) weigh(ctx context.Context, before bench.Footprint) error {
	for range firstMessages {
		if err := s.group.broadcast(ctx, make([]byte, s.config.Size)); err != nil {
			return err
		}
	}
	if s.config.Transport == "tcp" {
		rest(ctx, 3*idleTimeout) // members that have just met close what they do not need
	}
	after := bench.RestingFootprint(ctx)
	_, connections := s.group.network.counts()
	n := float64(s.members)
	s.result.HeapKB = bench.Round((float64(after.Heap)-float64(before.Heap))/1e3/n, 1)
	s.result.StackKB = bench.Round((float64(after.Stack)-float64(before.Stack))/1e3/n, 1)
	s.result.Goroutines = bench.Round(float64(after.Goroutines-before.Goroutines)/n, 1)
	s.result.Connections = bench.Round(float64(connections)/n, 1)
	return nil
}

// measureIdle measures a member that has nothing to do.
func (s *size) measureIdle(ctx context.Context) error {
	s.group.measureIdle(ctx, idleTime)
	n := float64(s.members)
	s.result.IdleCPU = bench.Round(s.group.idle.cpu.Seconds()*100/n, 4)
	s.result.IdleFrames = bench.Round(s.group.idle.frames/n, 2)
	return nil
}

// measureBroadcasts measures broadcasts and those of the bare tree, interleaved.
func (s *size) measureBroadcasts(ctx context.Context) error {
	pleach := s.group.system()
	c := broadcast.Config{
		Systems: []string{pleach.Name, "bare"}, External: []broadcast.System{pleach},
		Members: s.members, Dead: []int{0}, Size: s.config.Size, Rounds: 1000, Time: s.share(), Seed: s.config.Seed,
	}
	if s.config.Transport == "mem" {
		bare := bareMemory()
		c.Systems[1], c.External = bare.Name, append(c.External, bare)
	}
	results, err := broadcast.Run(ctx, c)
	if len(results) < 2 {
		return err
	}
	r, n := &s.result, float64(s.members)
	r.Broadcasts, r.BroadcastsComplete = results[0].Rounds, results[0].Complete
	r.BroadcastP50, r.BroadcastP99, r.Messages = results[0].P50, results[0].P99, results[0].Messages
	r.BareP50, r.BareP99 = results[1].P50, results[1].P99
	r.CPU, r.BareCPU = bench.Round(results[0].CPU/n, 2), bench.Round(results[1].CPU/n, 2)
	return err
}

// measureKills measures the view changes after so many deaths at once.
func (s *size) measureKills(ctx context.Context, dead int) Result {
	r := s.result
	r.Kills = dead
	evicted := s.group.evicted.Load()
	r.add(s.group.killRounds(ctx, r.Kills, s.share(), s.rng))
	r.Evicted = int(s.group.evicted.Load() - evicted)
	return r
}

// measureJoins has a tenth of the group join at once, and adds that to all results.
// Over memory no process can join.
func (s *size) measureJoins(ctx context.Context, results []Result) error {
	if s.config.Transport != "tcp" {
		return nil
	}
	joiners := max(1, s.members/10)
	if free := len(s.group.free(joiners)); free < joiners {
		if k := s.group.kill(ctx, s.group.choose(joiners-free, s.rng)); !k.complete {
			return nil
		}
	}
	took, views, err := s.group.join(ctx, joiners)
	if took > 0 {
		for i := range results {
			results[i].Joined, results[i].JoinMS, results[i].JoinViews = joiners, bench.Millis(took), views
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
