package stabilization

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// How long a group rests: at first, so that neighbors connect, and whenever it is
// whole again, so that what it still has to do does not fall on the next kill.
const (
	settleTime = time.Second
	restTime   = 50 * time.Millisecond
)

// rejoinTimeout is how long a killed member may take to rejoin.
const rejoinTimeout = time.Minute

// group is a group whose members are killed and rejoin.
type group struct {
	config    Config
	processes []*launch.Process // nil: dead
	sockets   *launch.Sockets
	reports   *bench.Reports
	report    *os.File // the other end, for members that are started later

	// What members have reported, by rank.
	ready       []bool
	memberState []memberState
	evicted     int

	// The present kill.
	victim  int
	present kill
	without []bool // by rank: in a view without the victim
	waiting int    // for so many others
}

// memberState is what a member sees.
type memberState struct {
	view     uint64
	missing  []int
	known    bool
	suspects int // the last one
}

// Run measures the kills of a config. If ctx ends first, it returns what was
// measured until then, with ctx's error.
func Run(ctx context.Context, c Config) (_ Result, err error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	if c.Limit == 0 {
		c.Limit = defaultLimit
	}
	g, err := newGroup(ctx, c)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	var kills []kill
	first := g.memberState[0].view
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	for err == nil && len(kills) < c.Kills {
		var k kill
		k, err = g.kill(ctx, c.victim(rng))
		if k.began > 0 {
			kills = append(kills, k)
		}
		if err == nil && c.Progress != nil {
			c.Progress(len(kills))
		}
	}
	result := c.result(kills)
	for _, s := range g.memberState {
		result.Views = max(result.Views, s.view-min(s.view, first))
	}
	result.Evicted = g.evicted
	return result, err
}

// newGroup starts a group as a whole.
func newGroup(ctx context.Context, c Config) (_ *group, err error) {
	sockets, err := launch.Listen("bench", c.Members)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	g := &group{
		config: c, sockets: sockets, victim: -1, processes: make([]*launch.Process, c.Members),
		ready: make([]bool, c.Members), memberState: make([]memberState, c.Members), without: make([]bool, c.Members),
	}
	g.reports, g.report, err = bench.OpenReports()
	if err != nil {
		return nil, errors.Join(err, sockets.Close())
	}
	for rank := range c.Members {
		if err := g.start(rank, "first"); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	if err := g.becomeWhole(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	time.Sleep(settleTime)
	return g, nil
}

// start starts a member, for the first time or again.
func (g *group) start(rank int, which string) (err error) {
	g.ready[rank], g.memberState[rank] = false, memberState{}
	g.processes[rank], err = g.sockets.Start(rank, launch.Command{
		Args:  append(slices.Clone(g.config.Command), which),
		Env:   []string{"GOMAXPROCS=" + strconv.Itoa(g.config.processors())},
		Files: []*os.File{g.report}, Stderr: os.Stderr, Input: true,
	})
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// victim returns the next one.
func (c *Config) victim(rng *rand.Rand) int {
	if c.Coordinator {
		return 0 // all are there, and the lowest rank coordinates
	}
	return 1 + rng.IntN(c.Members-1)
}

// kill kills a member, waits until all others are in a view without it, and starts
// it again.
func (g *group) kill(ctx context.Context, victim int) (kill, error) {
	p := g.processes[victim]
	g.processes[victim] = nil
	g.victim, g.waiting = victim, len(g.processes)-1
	clear(g.without)
	before := workOf(g.processes)
	g.present = kill{began: bench.Now()}
	p.Kill()
	err := g.await(ctx, g.config.Limit, func() bool { return g.waiting == 0 })
	<-p.Ended()
	p.CloseInput()
	k, did := g.present, workOf(g.processes).minus(before)
	k.cpu, k.timeslices = did.cpu, did.timeslices
	if g.waiting > 0 {
		k.installed = 0
	}
	g.victim = -1
	if ctx.Err() != nil {
		return kill{}, ctx.Err()
	}
	if err != nil && !errors.Is(err, bench.ErrTimeout) {
		return k, err
	}
	for some := true; some; { // the last reports of the victim
		some, err = g.reports.Read(g.take)
		if err != nil {
			return k, err
		}
	}
	if err := g.start(victim, "again"); err != nil {
		return k, err
	}
	return k, g.becomeWhole(ctx)
}

// becomeWhole waits until all are in one view.
func (g *group) becomeWhole(ctx context.Context) error {
	err := g.await(ctx, rejoinTimeout, func() bool {
		for rank, s := range g.memberState {
			if !g.ready[rank] || !s.known || len(s.missing) > 0 || s.view != g.memberState[0].view {
				return false
			}
		}
		return true
	})
	if errors.Is(err, bench.ErrTimeout) {
		return fmt.Errorf("bench: %s: %d members are not in one view after %v", g.config.System, len(g.processes),
			rejoinTimeout)
	}
	if err == nil {
		time.Sleep(restTime)
	}
	return err
}

// await reads records until there are enough.
func (g *group) await(ctx context.Context, limit time.Duration, enough func() bool) error {
	return bench.Await(ctx, limit, g.config.System, g.processes, g.reports, g.take, enough)
}

// take takes a record. Those of dead members are void.
func (g *group) take(r bench.Record) {
	if int(r.Rank) >= len(g.processes) || g.processes[r.Rank] == nil {
		return
	}
	s := &g.memberState[r.Rank]
	switch r.Kind {
	case recordReady:
		g.ready[r.Rank] = true
	case recordEvicted:
		g.evicted++
	case recordView:
		s.view, s.missing, s.known = r.Value, s.missing[:0], false
	case recordMissing:
		s.missing = append(s.missing, int(r.Value))
	case recordInstalled:
		s.known = true
		if !g.without[r.Rank] && slices.Contains(s.missing, g.victim) {
			g.without[r.Rank] = true
			g.waiting--
			g.present.installed = max(g.present.installed, r.Value)
		}
	case recordSuspects:
		s.suspects = int(r.Value)
	case recordSuspectedAt:
		if p := &g.present; s.suspects == g.victim && r.Value >= p.began && (p.suspected == 0 || r.Value < p.suspected) {
			p.suspected = r.Value
		}
	}
}

// close ends all processes.
func (g *group) close() error {
	launch.Stop(g.processes)
	return errors.Join(g.reports.Close(), g.report.Close(), g.sockets.Close())
}
