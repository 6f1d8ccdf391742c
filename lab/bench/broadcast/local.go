package broadcast

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// settling is how long a group rests after a burst, so that what it still has to do
// is not counted for the group that is measured next.
const settling = 2 * time.Millisecond

// local is a group whose members are all in this process.
type local struct {
	plan      *plan
	members   []member    // nil: dead
	receivers []*receiver // that of rank 0 gets nothing
	payload   []byte
	bursts    uint64
	latch     latch
}

func newLocal(p *plan) (_ *local, err error) {
	sockets, err := p.listen()
	if err != nil {
		return nil, err
	}
	defer sockets.Close()
	g := &local{
		plan: p, members: make([]member, p.members), receivers: make([]*receiver, p.members),
		payload: make([]byte, p.size), latch: latch{done: make(chan arrival, 16)},
	}
	for rank := range p.members {
		if p.dead[rank] {
			continue
		}
		g.receivers[rank] = &receiver{size: p.size, burst: p.burst, arrived: g.latch.arrive}
		m, err := p.system.start(memberConfig{groupName, rank, sockets.Addresses, sockets.Take(rank)}, g.receivers[rank])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: %s, rank %d: %w", p.system.name, rank, err), g.close())
		}
		g.members[rank] = m
	}
	return g, nil
}

func (g *local) broadcast(ctx context.Context, limit time.Duration) (outcome, error) {
	before := g.least()
	cpu := bench.ProcessorTime()
	g.bursts++
	g.latch.expect(g.bursts, g.plan.reachable)

	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	// Without the limit: a burst that stops halfway would upset the numbers.
	if err := g.members[0].broadcast(ctx, g.payload, (g.bursts-1)*uint64(g.plan.burst), g.plan.burst); err != nil {
		return outcome{}, err
	}
	end := g.wait(timed)
	time.Sleep(settling)
	o := outcome{cpu: bench.ProcessorTime() - cpu}
	switch {
	case g.plan.reachable < g.plan.live()-1:
	case !end.IsZero():
		o.complete, o.took = g.plan.burst, end.Sub(start)
	default:
		o.complete = min(int(g.least()-before), g.plan.burst-1)
	}
	return o, g.wrong()
}

// wait returns when the last member had the burst, or the zero time if that is
// too late.
func (g *local) wait(ctx context.Context) time.Time {
	if g.plan.reachable == 0 {
		return time.Time{}
	}
	return g.latch.wait(ctx, g.bursts)
}

// least is how many messages every live member has.
func (g *local) least() uint64 {
	least := g.bursts * uint64(g.plan.burst)
	for rank, r := range g.receivers {
		if rank != 0 && r != nil {
			least = min(least, r.count.Load())
		}
	}
	return least
}

// wrong says which member got a message that was not sent.
func (g *local) wrong() error {
	for rank, r := range g.receivers {
		if r == nil {
			continue
		}
		if err := r.err(); err != nil {
			return fmt.Errorf("bench: %s, rank %d: %w", g.plan.system.name, rank, err)
		}
	}
	return nil
}

func (g *local) counts() (counts, error) {
	var sum counts
	for _, m := range g.members {
		if m != nil {
			sum = sum.plus(m.counts())
		}
	}
	return sum, nil
}

func (g *local) close() error {
	errs := make([]error, len(g.members))
	var closing sync.WaitGroup
	for rank, m := range g.members {
		if m != nil {
			closing.Go(func() { errs[rank] = m.close() })
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}
