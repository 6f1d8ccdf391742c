package collective_test

// Jobs on several hosts with several processes each, in network namespaces: inside a host
// processes share memory, between hosts they have TCP.

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const (
	hostsProgram = "hosts "
	oneLevel     = "one level"
	twoLevels    = "two levels"
	killedRounds = "killed"
)

// near is a network in which two levels never pay.
var near = collective.Network{Between: collective.Link{Latency: 1, Overhead: 1, Bandwidth: 1e12}}

// runHosts is a process of such a job: it measures calls, or is killed in one of its rounds.
func runHosts(ctx context.Context, levels string) error {
	c := pleach.Config{}
	if levels == oneLevel {
		c.Job.Network = near
	}
	w, err := pleach.NewWorld(ctx, c)
	if err != nil {
		return err
	}
	if used := strings.Contains(fmt.Sprint(w.Algorithms()), twoLevels); used == (levels == oneLevel) {
		return fmt.Errorf("%s: the algorithms are %v", levels, w.Algorithms())
	}
	if levels == killedRounds {
		for round := range 40 {
			fmt.Println("round", round)
			if err := jobRound(ctx, w, round); err != nil {
				return err
			}
		}
	} else if err := measureCalls(ctx, w); err != nil {
		return err
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
}

// measureCalls prints the median of each call at rank 0.
func measureCalls(ctx context.Context, w *pleach.World) error {
	const rounds = 1000
	in := slices.Repeat([]float64{1}, 1<<10)
	out := make([]float64, len(in))
	for _, call := range []struct {
		name string
		run  func() error
	}{
		{"Barrier", func() error { return collective.Barrier(ctx, w) }},
		{
			"Broadcast, 8 bytes, root 1",
			func() error { return without(collective.Broadcast(ctx, w, 1, in[:1], collective.Into(out))) },
		},
		{"Allreduce, 8 bytes", func() error {
			return without(collective.Allreduce(ctx, w, in[:1], collective.Sum[float64](), collective.Into(out)))
		}},
		{"Allreduce, 8 KiB", func() error {
			sum, err := collective.Allreduce(ctx, w, in, collective.Sum[float64](), collective.Into(out))
			if err == nil && sum[len(sum)-1] != float64(w.Size()) {
				err = fmt.Errorf("the sum of %d ones is %v", w.Size(), sum[0])
			}
			return err
		}},
	} {
		took := make([]time.Duration, rounds)
		for i := range took {
			if err := collective.Barrier(ctx, w); err != nil {
				return err
			}
			began := time.Now()
			if err := call.run(); err != nil {
				return err
			}
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		if w.Rank() == 0 {
			fmt.Printf("%s: p50 %v\n", call.name, took[len(took)/2].Round(100*time.Nanosecond))
		}
	}
	return nil
}

// newHosts returns hosts, in a full run only: many processes on few processors take long.
func newHosts(t *testing.T, hosts int) *netns.Net {
	t.Helper()
	if !testutil.Full.On() {
		t.Skip("jobs on several hosts are run with PLEACH_FULL=1")
	}
	return netns.New(t, hosts)
}

// startHosts starts a job of so many processes on each host.
func startHosts(t *testing.T, network *netns.Net, hosts, each int, what string) (processes []*process) {
	t.Helper()
	var addresses []string
	for rank := range hosts * each {
		addresses = append(addresses, fmt.Sprintf("%s:%d", network.Address(rank/each), 7000+rank))
	}
	for rank := range addresses {
		cmd := network.Command(rank/each, os.Args[0])
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), jobProgram+"="+hostsProgram+what, "PLEACH_GROUP=hosts", "GOMAXPROCS=1",
			fmt.Sprint("PLEACH_RANK=", rank), fmt.Sprint("PLEACH_SIZE=", len(addresses)),
			"PLEACH_ADDRESSES="+strings.Join(addresses, ","))
		processes = append(processes, startProcess(t, cmd, 100))
	}
	return processes
}

// Both ways give the right results. The times are for the reader.
func TestLevelsBetweenHosts(t *testing.T) {
	const hosts, each, repetitions = 4, 4, 3
	network := newHosts(t, hosts)
	for range repetitions {
		for _, levels := range []string{oneLevel, twoLevels} {
			for rank, p := range startHosts(t, network, hosts, each, levels) {
				last := ""
				for last = range p.lines {
					if rank == 0 && last != "over" {
						t.Logf("%d hosts with %d processes each, %s: %s", hosts, each, levels, last)
					}
				}
				if last != "over" {
					t.Errorf("%s: rank %d ended with %q", levels, rank, last)
				}
				_ = p.cmd.Wait()
			}
		}
	}
}

// A leader and another process of a host are killed by SIGKILL; the others get the right
// results.
func TestLeadersAreKilled(t *testing.T) {
	const hosts, each = 2, 4
	network := newHosts(t, hosts)
	for _, victims := range []map[int]int{{4: 11}, {0: 5, 6: 20}} { // by rank: in which round
		var watching sync.WaitGroup
		for rank, p := range startHosts(t, network, hosts, each, killedRounds) {
			round, dies := victims[rank]
			watching.Go(func() {
				last := ""
				for last = range p.lines {
					if dies && last == fmt.Sprint("round ", round) {
						_ = p.cmd.Process.Kill()
					}
				}
				if !dies && last != "over" {
					t.Errorf("victims %v: rank %d ended with %q", victims, rank, last)
				}
			})
		}
		watching.Wait()
	}
}
