package experiments

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// collectiveRun is one call of all processes, under LogP.
type collectiveRun struct {
	call    string // a key of collectiveCalls
	size    int    // P
	l, o    int
	f       int   // how many dead it is corrected for; 0: it is not
	dead    []int // from the start
	victims []int // who die during it
	death   int   // when
	// notice is when everybody is told: by the link, how long after a death
	// somebody is lost; of a call that runs through, when the next view comes.
	notice int

	root  int             // of a broadcast
	hosts collectiveHosts // if there are several
}

// collectiveHosts spreads the processes over hosts, each of which has as many that follow each
// other. A message between hosts has a latency and an overhead of its own. Those that leave a
// host follow each other at its interface, in a gap.
type collectiveHosts struct {
	number    int // 0: there is one
	l, o, gap int
	known     bool // the engines know which processes share a host
}

// host is the host of a rank.
func (r *collectiveRun) host(rank int) int {
	if r.hosts.number == 0 {
		return 0
	}
	return rank / (r.size / r.hosts.number)
}

// placement is what engines know of hosts.
func (r *collectiveRun) placement() *engine.Placement {
	if !r.hosts.known {
		return nil
	}
	names := make([]string, r.size)
	for rank := range names {
		names[rank] = strconv.Itoa(r.host(rank))
	}
	return engine.NewPlacement(names)
}

// collectiveOutcome is what a call took.
type collectiveOutcome struct {
	// latency is when the last living process has returned, quiet when the last
	// message is over, in steps.
	latency, quiet int
	sent           []int // messages, by rank
	between        int   // messages between hosts
}

func (o *collectiveOutcome) messages() (sum int) {
	for _, n := range o.sent {
		sum += n
	}
	return sum
}

// weight is what a task puts in: numbers whose sums tell which tasks are in them.
func weight(task int) []uint64 {
	x := uint64(task+1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return []uint64{x ^ x>>27}
}

// collectiveCalls are what is called, by name. Each checks what it gets against
// the sum that is right, but for the dead.
var collectiveCalls = map[string]func(r *collectiveRun, w collective.Comm) error{
	"barrier": func(_ *collectiveRun, w collective.Comm) error {
		return collective.Barrier(context.Background(), w)
	},
	"broadcast": func(r *collectiveRun, w collective.Comm) error {
		got, err := collective.Broadcast(context.Background(), w, r.root, weight(0), r.restore())
		return r.check(got, err, weight(0)[0])
	},
	"reduce": func(r *collectiveRun, w collective.Comm) error {
		got, err := collective.Reduce(context.Background(), w, 0, weight(w.Rank()), collective.Sum[uint64](), r.strength())
		if w.Rank() != 0 {
			return err
		}
		return r.check(got, err, r.sum(r.size))
	},
	"allreduce": func(r *collectiveRun, w collective.Comm) error {
		got, err := collective.Allreduce(context.Background(), w, weight(w.Rank()), collective.Sum[uint64](), r.strength())
		return r.check(got, err, r.sum(r.size))
	},
	"scan": func(r *collectiveRun, w collective.Comm) error {
		got, err := collective.Scan(context.Background(), w, weight(w.Rank()), collective.Sum[uint64](), r.restore())
		return r.check(got, err, r.sum(w.Rank()+1))
	},
}

// strength is corrected, or else runs through.
func (r *collectiveRun) strength() collective.Option {
	if r.f > 0 {
		return collective.Corrected(r.f)
	}
	return r.restore()
}

func (r *collectiveRun) restore() collective.Option {
	return collective.Restore(func(_ context.Context, task int) ([]uint64, error) { return weight(task), nil })
}

// sum is that of the first tasks without those that are dead from the start.
func (r *collectiveRun) sum(tasks int) (sum uint64) {
	for task := range tasks {
		sum += weight(task)[0]
	}
	for _, task := range r.dead {
		sum -= weight(task)[0]
	}
	return sum
}

// check takes a result that includes every live process. The input of a process that
// dies during a corrected call may be missing.
func (r *collectiveRun) check(got []uint64, err error, want uint64) error {
	if err != nil {
		return err
	}
	if len(got) == 1 && r.f > 0 {
		for some := range 1 << len(r.victims) {
			sum := want
			for i, v := range r.victims {
				sum -= weight(v)[0] * uint64(some>>i&1)
			}
			if got[0] == sum {
				return nil
			}
		}
	}
	if len(got) != 1 || got[0] != want {
		return fmt.Errorf("got %x, want %x", got, want)
	}
	return nil
}

// simulate makes the call, and checks what all who live get.
func (r collectiveRun) simulate(t *testing.T) (outcome collectiveOutcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newLogpNetwork(t, r)
		n.at(r.notice, func() { n.tell(r.dead) })
		if len(r.victims) > 0 {
			n.at(r.death, func() {
				for _, v := range r.victims {
					n.kill(v)
				}
			})
			n.at(r.death+r.notice, func() { n.tell(r.victims) })
		}
		errs := n.run(func(w collective.Comm) error { return collectiveCalls[r.call](&r, w) })
		for rank, err := range errs {
			if err != nil && !n.gone[rank] {
				t.Fatalf("%+v: rank %d: %v", r, rank, err)
			}
		}
		outcome = n.outcome
	})
	return outcome
}

// tell tells all who live that some do not: a corrected call by the link, one that
// runs through by a view.
func (n *logpNetwork) tell(dead []int) {
	live := n.live()
	for _, rank := range live {
		if n.f == 0 && len(dead) > 0 {
			n.engines[rank].Install(2, live)
		}
		for _, d := range dead {
			n.engines[rank].PeerDown(d)
		}
	}
}

// withDead has f random others than the root dead from the start.
func (r collectiveRun) withDead(f int, seed uint64) collectiveRun {
	for _, d := range logp.RandomDead(protocol.Rank(r.size), 0, f, seed) {
		r.dead = append(r.dead, int(d))
	}
	return r
}
