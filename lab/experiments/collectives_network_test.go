package experiments

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
)

// What processes run for a collective is an engine with goroutines, channels and
// timers; it is no machine that logp.Simulator could drive. But a bubble of package
// synctest gives it a clock that stands still while anybody has something to do. So
// the very engines run here, all P of them, and only the link between them is a
// model: one send port and one receive port each, busy for o, and L in between.
// Bubbles exist in tests only, so these experiments are tests.

// collectiveStep is how long a step lasts. A thousand are over long before an
// engine asks who is holding it up.
const collectiveStep = 10 * time.Nanosecond

// collectiveBound is in which step whatever still goes on is ended.
const collectiveBound = 1 << 17

// errKilled is what the dead say, errEndless what those say who wait forever.
var (
	errKilled  = errors.New("killed by the experiment")
	errEndless = errors.New("not over after very many steps")
)

// logpNetwork is the engines of a job and the ports between them.
type logpNetwork struct {
	collectiveRun
	began   time.Time
	engines []*engine.Engine // nil: dead from the start

	mu      sync.Mutex
	gone    []bool            // by rank: it is dead
	sending []int             // by rank: from when its send port is free
	leaving []int             // by host: from when its interface is free
	flights map[int][]flight  // by when they arrive at a port
	ports   [][]flight        // by rank: what waits; the first is being received
	ends    map[int][]int     // by when: ports whose receive is over
	calls   map[int][]func()  // by when: what else happens
	outcome collectiveOutcome // so far
}

// flight is a message on its way.
type flight struct {
	from, to int
	bytes    []byte
	o        int // how long the receive port is busy with it
}

// newLogpNetwork makes the engines.
func newLogpNetwork(t *testing.T, r collectiveRun) *logpNetwork {
	t.Helper()
	n := &logpNetwork{
		collectiveRun: r, began: time.Now(), engines: make([]*engine.Engine, r.size), gone: make([]bool, r.size),
		sending: make([]int, r.size), leaving: make([]int, max(1, r.hosts.number)), ports: make([][]flight, r.size),
		outcome: collectiveOutcome{sent: make([]int, r.size)},
		flights: make(map[int][]flight), ends: make(map[int][]int), calls: make(map[int][]func()),
	}
	for _, v := range r.dead {
		n.gone[v] = true
	}
	placement := r.placement()
	for rank := range r.size {
		if n.gone[rank] {
			continue
		}
		e, err := engine.New(engine.Config{Rank: rank, Size: r.size, View: 1, Link: logpLink{n, rank}, Placement: placement})
		if err != nil {
			t.Fatal(err)
		}
		n.engines[rank] = e
	}
	return n
}

// now is the present step.
func (n *logpNetwork) now() int { return int(time.Since(n.began) / collectiveStep) }

// until sleeps to the beginning of a step.
func (n *logpNetwork) until(step int) {
	time.Sleep(time.Until(n.began.Add(time.Duration(step) * collectiveStep)))
}

// logpLink is a process's link.
type logpLink struct {
	n    *logpNetwork
	rank int
}

// Send implements [engine.Link]. It returns when the port is free again.
func (l logpLink) Send(_ context.Context, to int, head, body []byte) error {
	n := l.n
	n.mu.Lock()
	if n.gone[l.rank] {
		n.mu.Unlock()
		return errKilled
	}
	latency, o := n.l, n.o
	if n.host(l.rank) != n.host(to) {
		latency, o = n.hosts.l, n.hosts.o
		n.outcome.between++
	}
	free := max(n.now(), n.sending[l.rank]) + o
	n.sending[l.rank] = free
	arrives := n.leave(l.rank, to, free) + latency
	n.flights[arrives] = append(n.flights[arrives], flight{l.rank, to, slices.Concat(head, body), o})
	n.outcome.sent[l.rank]++
	n.mu.Unlock()
	n.until(free)
	return nil
}

// leave is when a message leaves its host.
func (n *logpNetwork) leave(from, to, ready int) int {
	host := n.host(from)
	if host == n.host(to) {
		return ready
	}
	leaves := max(ready, n.leaving[host])
	n.leaving[host] = leaves + n.hosts.gap
	return leaves
}

// carry moves messages until everybody is done and nothing is on its way. Once in
// every step it wakes, a little later than those whose send is over.
func (n *logpNetwork) carry(done *sync.WaitGroup) {
	var over bool
	go func() {
		done.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		over = true
	}()
	for step := 0; ; step++ {
		n.until(step)
		time.Sleep(time.Nanosecond)
		n.mu.Lock()
		calls := n.calls[step]
		arrived := n.receive(step)
		quiet := over && len(n.flights)+len(n.ends) == 0
		delete(n.calls, step)
		n.mu.Unlock()
		for _, call := range calls {
			call()
		}
		if step == collectiveBound {
			n.end(errEndless)
		}
		for _, f := range arrived {
			if err := n.engines[f.to].Receive(f.from, f.bytes); err != nil {
				panic(err)
			}
		}
		if quiet {
			return
		}
	}
}

// receive is what the receive ports do in a step: it returns what they are
// through with. Of those that arrive together the lowest rank's goes first.
func (n *logpNetwork) receive(step int) (over []flight) {
	for _, rank := range n.ends[step] {
		if n.gone[rank] {
			continue
		}
		over = append(over, n.ports[rank][0])
		n.ports[rank] = n.ports[rank][1:]
		if len(n.ports[rank]) > 0 {
			n.beginReceive(step, rank)
		}
	}
	delete(n.ends, step)
	slices.SortFunc(n.flights[step], func(a, b flight) int { return cmp.Compare(a.from, b.from) })
	for _, f := range n.flights[step] {
		n.outcome.quiet = step
		if n.gone[f.to] {
			continue
		}
		n.ports[f.to] = append(n.ports[f.to], f)
		if len(n.ports[f.to]) == 1 {
			n.beginReceive(step, f.to)
		}
	}
	delete(n.flights, step)
	if len(over) > 0 {
		n.outcome.quiet = step
	}
	return over
}

// beginReceive has a port receive the first message that waits.
func (n *logpNetwork) beginReceive(step, rank int) {
	end := step + n.ports[rank][0].o
	n.ends[end] = append(n.ends[end], rank)
}

// kill ends a process.
func (n *logpNetwork) kill(rank int) {
	n.mu.Lock()
	n.gone[rank], n.ports[rank] = true, nil
	n.mu.Unlock()
	n.engines[rank].End(errKilled)
}

// end ends all processes.
func (n *logpNetwork) end(cause error) {
	for _, e := range n.engines {
		if e != nil {
			e.End(cause)
		}
	}
}

// live are the ranks of those who live.
func (n *logpNetwork) live() (ranks []int) {
	for rank, gone := range n.gone {
		if !gone {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// at has something done in a step.
func (n *logpNetwork) at(step int, call func()) { n.calls[step] = append(n.calls[step], call) }

// run runs a program as every process, and returns when nothing goes on any more.
func (n *logpNetwork) run(program func(collective.Comm) error) (errs []error) {
	errs = make([]error, n.size)
	var all sync.WaitGroup
	for rank, e := range n.engines {
		if e == nil {
			continue
		}
		all.Go(func() {
			errs[rank] = program(collective.Comm(e.Comm()))
			n.mu.Lock()
			defer n.mu.Unlock()
			if !n.gone[rank] {
				n.outcome.latency = max(n.outcome.latency, n.now())
			}
		})
	}
	n.carry(&all)
	for _, e := range n.engines {
		if e != nil {
			e.Close()
		}
	}
	return errs
}
