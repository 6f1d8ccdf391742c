//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"
)

// How long a group is left alone: at first, so that neighbors meet, as who was
// never met may still have to be started; and whenever it is whole again, so that
// what it still has to do does not fall on the next kill.
const (
	meeting = time.Second
	rest    = 50 * time.Millisecond
)

// returning is how long a killed member may take to be back.
const returning = time.Minute

// survivors is a group whose members are killed and come back.
type survivors struct {
	config    Stabilization
	processes []*memberProcess // nil: dead
	addresses []string
	reports   *reports
	report    *os.File // the other end, for those who are started later

	// What members have reported, by rank.
	ready    []bool
	standing []standing
	evicted  int

	// The present kill.
	victim  int
	present kill
	left    []bool // who is in a view without the victim
	waiting int    // for so many others
}

// standing is what a member sees.
type standing struct {
	view     uint64
	missing  []int
	known    bool
	suspects int // the last one
}

// Stabilize measures. If ctx ends first, it returns what was measured until then,
// with ctx's error.
func Stabilize(ctx context.Context, c Stabilization) (_ StabilizationResult, err error) {
	if err := c.Check(); err != nil {
		return StabilizationResult{}, err
	}
	if c.Limit == 0 {
		c.Limit = defaultStabilizationLimit
	}
	g, err := newSurvivors(ctx, c)
	if err != nil {
		return StabilizationResult{}, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	var kills []kill
	first := g.standing[0].view
	dice := rand.New(rand.NewPCG(c.Seed, 0))
	for err == nil && len(kills) < c.Kills {
		var k kill
		if k, err = g.kill(ctx, g.choose(dice)); k.began > 0 {
			kills = append(kills, k)
		}
		if err == nil && c.Progress != nil {
			c.Progress(len(kills))
		}
	}
	result := c.result(kills)
	for _, s := range g.standing {
		result.Views = max(result.Views, s.view-min(s.view, first))
	}
	result.Evicted = g.evicted
	return result, err
}

// newSurvivors starts a group as a whole.
func newSurvivors(ctx context.Context, c Stabilization) (_ *survivors, err error) {
	listeners, addresses, err := (&plan{members: c.Members}).listen()
	if err != nil {
		return nil, err
	}
	defer closeListeners(listeners)
	g := &survivors{
		config: c, addresses: addresses, victim: -1, processes: make([]*memberProcess, c.Members),
		ready: make([]bool, c.Members), standing: make([]standing, c.Members), left: make([]bool, c.Members),
	}
	if g.reports, g.report, err = openReports(); err != nil {
		return nil, err
	}
	for rank, l := range listeners {
		socket, err := l.File()
		if err == nil {
			err = g.start(rank, "first", socket)
			socket.Close()
		}
		if err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	closeListeners(listeners) // only the processes may hold them, so that their death is seen
	if err := g.becomeWhole(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	time.Sleep(meeting)
	return g, nil
}

// start starts a member; without a socket, one that comes back.
func (g *survivors) start(rank int, which string, socket *os.File) (err error) {
	g.ready[rank], g.standing[rank] = false, standing{}
	args := append(slices.Clone(g.config.Command), which)
	env := append(environment(rank, g.addresses), "GOMAXPROCS="+strconv.Itoa(g.config.processors()))
	if g.processes[rank], err = startProcess(args, env, socket, g.report); err != nil {
		return fmt.Errorf("bench: cannot start rank %d: %w", rank, err)
	}
	return nil
}

// choose returns who is killed next.
func (g *survivors) choose(dice *rand.Rand) int {
	if g.config.Coordinator {
		return 0 // all are there, and the lowest rank coordinates
	}
	return 1 + dice.IntN(g.config.Members-1)
}

// kill kills a member, waits until all others are in a view without it, and has it
// come back.
func (g *survivors) kill(ctx context.Context, victim int) (kill, error) {
	p := g.processes[victim]
	g.processes[victim] = nil
	g.victim, g.waiting = victim, len(g.processes)-1
	clear(g.left)
	before := workOf(g.processes)
	g.present = kill{began: now()}
	if err := p.command.Process.Kill(); err != nil {
		return kill{}, fmt.Errorf("bench: cannot kill rank %d: %w", victim, err)
	}
	err := g.await(ctx, g.config.Limit, func() bool { return g.waiting == 0 })
	<-p.ended
	k, did := g.present, workOf(g.processes).minus(before)
	k.cpu, k.turns = did.cpu, did.turns
	if g.waiting > 0 {
		k.installed = 0
	}
	g.victim = -1
	if ctx.Err() != nil {
		return kill{}, ctx.Err()
	}
	if err != nil && !errors.Is(err, errTooLate) {
		return k, err
	}
	for some := true; some; { // what the dead one has said last
		if some, err = g.reports.read(g.take); err != nil {
			return k, err
		}
	}
	if err := g.start(victim, "again", nil); err != nil {
		return k, err
	}
	return k, g.becomeWhole(ctx)
}

// becomeWhole waits until all are in one view.
func (g *survivors) becomeWhole(ctx context.Context) error {
	err := g.await(ctx, returning, func() bool {
		for rank, s := range g.standing {
			if !g.ready[rank] || !s.known || len(s.missing) > 0 || s.view != g.standing[0].view {
				return false
			}
		}
		return true
	})
	if errors.Is(err, errTooLate) {
		return fmt.Errorf("bench: %s: %d members are not in one view after %v", g.config.System, len(g.processes), returning)
	}
	if err == nil {
		time.Sleep(rest)
	}
	return err
}

// await takes reports until there are enough.
func (g *survivors) await(ctx context.Context, limit time.Duration, enough func() bool) error {
	return await(ctx, limit, enough, func() (some bool, err error) {
		if some, err = g.reports.read(g.take); err == nil && !some {
			err = death(g.config.System, g.processes)
		}
		return some, err
	})
}

// take takes a report. Those of the dead are void.
func (g *survivors) take(r record) {
	if int(r.rank) >= len(g.processes) || g.processes[r.rank] == nil {
		return
	}
	s := &g.standing[r.rank]
	switch r.kind {
	case recordReady:
		g.ready[r.rank] = true
	case recordEvicted:
		g.evicted++
	case recordView:
		s.view, s.missing, s.known = r.value, s.missing[:0], false
	case recordMissing:
		s.missing = append(s.missing, int(r.value))
	case recordInstalled:
		s.known = true
		if !g.left[r.rank] && slices.Contains(s.missing, g.victim) {
			g.left[r.rank] = true
			g.waiting--
			g.present.installed = max(g.present.installed, r.value)
		}
	case recordSuspects:
		s.suspects = int(r.value)
	case recordSuspectedAt:
		if p := &g.present; s.suspects == g.victim && r.value >= p.began && (p.suspected == 0 || r.value < p.suspected) {
			p.suspected = r.value
		}
	}
}

// close ends all processes.
func (g *survivors) close() error {
	endProcesses(g.processes)
	return errors.Join(g.reports.close(), g.report.Close())
}
