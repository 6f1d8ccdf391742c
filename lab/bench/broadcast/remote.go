package broadcast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// remote is a group whose members are processes.
type remote struct {
	plan      *plan
	processes []*launch.Process // nil: dead
	reports   *bench.Reports
	bursts    uint64

	// What members have reported:
	ready   int
	arrived []uint64 // bursts, by rank
	last    uint64   // when the last burst that counts was there
	began   uint64   // when the root began
	missing int      // members that have yet to report the burst
	totals  []counts
	got     []uint64 // messages, by rank
	counted int
}

func newRemote(ctx context.Context, command []string, p *plan) (_ *remote, err error) {
	sockets, err := p.listen()
	if err != nil {
		return nil, err
	}
	defer sockets.Close()
	in, out, err := bench.OpenReports()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	g := &remote{
		plan: p, processes: make([]*launch.Process, p.members), reports: in,
		arrived: make([]uint64, p.members), totals: make([]counts, p.members), got: make([]uint64, p.members),
	}
	args := append(slices.Clone(command), p.system.name, strconv.Itoa(p.size), strconv.Itoa(p.burst))
	for rank := range p.members {
		if p.dead[rank] {
			continue
		}
		g.processes[rank], err = sockets.Start(rank, launch.Command{
			Args: args, Files: []*os.File{out}, Stderr: os.Stderr,
			Input: true,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: %w", err), g.close())
		}
	}
	if err := g.await(ctx, bench.Timeout, func() bool { return g.ready == p.live() }); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: %s: %d of %d processes started: %w", p.system.name, g.ready, p.live(),
			err), g.close())
	}
	return g, nil
}

// command gives a member a command.
func (g *remote) command(rank int, command byte) error {
	_, err := g.processes[rank].Input().Write([]byte{command})
	return err
}

func (g *remote) broadcast(ctx context.Context, limit time.Duration) (outcome, error) {
	g.bursts++
	g.began, g.last, g.missing = 0, 0, g.plan.reachable
	if err := g.command(0, commandBroadcast); err != nil {
		return outcome{}, err
	}
	err := g.await(ctx, limit, func() bool { return g.missing == 0 && g.began > 0 })
	if err != nil && !errors.Is(err, bench.ErrTimeout) {
		return outcome{}, err
	}
	time.Sleep(settling)
	switch {
	case g.plan.reachable < g.plan.live()-1:
		return outcome{}, nil
	case err == nil:
		return outcome{complete: g.plan.burst, took: time.Duration(g.last - g.began)}, nil
	}
	if _, err := g.counts(); err != nil {
		return outcome{}, err
	}
	return outcome{complete: min(g.least(), g.plan.burst-1)}, nil
}

// least is how many messages of this burst every live member has.
func (g *remote) least() int {
	before := (g.bursts - 1) * uint64(g.plan.burst)
	least := before + uint64(g.plan.burst)
	for rank, p := range g.processes {
		if rank != 0 && p != nil {
			least = min(least, g.got[rank])
		}
	}
	return int(max(least, before) - before)
}

func (g *remote) counts() (counts, error) {
	g.counted = 0
	for rank, p := range g.processes {
		if p != nil {
			if err := g.command(rank, commandCount); err != nil {
				return counts{}, err
			}
		}
	}
	if err := g.await(context.Background(), bench.Timeout, func() bool { return g.counted == g.plan.live() }); err != nil {
		return counts{}, fmt.Errorf("bench: %s: %d of %d processes told what they counted: %w", g.plan.system.name, g.counted,
			g.plan.live(), err)
	}
	var sum counts
	for _, c := range g.totals {
		sum = sum.plus(c)
	}
	return sum, nil
}

// await reads records until there are enough.
func (g *remote) await(ctx context.Context, limit time.Duration, enough func() bool) error {
	return bench.Await(ctx, limit, g.plan.system.name, g.processes, g.reports, g.take, enough)
}

// take takes a record.
func (g *remote) take(r bench.Record) {
	if int(r.Rank) >= len(g.processes) {
		return
	}
	total := &g.totals[r.Rank]
	switch r.Kind {
	case recordReady:
		g.ready++
	case recordBegan:
		g.began = r.Value
	case recordArrived:
		g.arrived[r.Rank]++
		if g.arrived[r.Rank] == g.bursts {
			g.missing--
			g.last = max(g.last, r.Value)
		}
	case recordReceived:
		g.got[r.Rank] = r.Value
	case recordFrames:
		total.frames = r.Value
	case recordBytes:
		total.bytes = r.Value
	case recordCPU:
		total.cpu = time.Duration(r.Value)
		g.counted++
	}
}

func (g *remote) close() error {
	launch.Stop(g.processes)
	return g.reports.Close()
}
