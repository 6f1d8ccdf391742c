// Command lease measures how long a lease has no holder after its holder was killed, for
// Pleach and for etcd in one run.
//
// Every holder is a process: this program starts itself as one, and they report over pipes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/peers/internal/program"
)

const usage = `Measure how long leases have no holder after the process that holds them was killed
(SIGKILL), for Pleach and etcd, which take turns on this host. Processes contend for --leases
leases; the one that holds the most is killed and started again, --kills times. A time is from
the kill until another process has got the lease.

  pleach   package lease; its processes are the members of the group
  etcd     a session and a mutex of etcd's client, with as many servers, which stay; a
           TTL below 2 s is 2 s

Usage: go run ./lease [flags]

`

// Config says what to measure.
type Config struct {
	Processes, Leases, Kills int
	TTL                      time.Duration
	Seed                     uint64
	Systems                  []string
}

// Result is what was measured of a system.
type Result struct {
	System    string  `json:"system"`
	Processes int     `json:"processes"`
	TTL       float64 `json:"ttl_ms"`
	Kills     int     `json:"kills"`
	Leases    int     `json:"leases"` // whose holders were killed
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
	// TwoHolders counts leases that a process got while another one, which lives, held them.
	TwoHolders int `json:"two_holders"`
}

func main() {
	program.Main("lease", func(ctx context.Context) error { return run(ctx, os.Args, os.Stdout, os.Stderr) })
}

// run measures, or is a process: then it was started as "holder".
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	if args[0] == "holder" {
		return hold(ctx, args[1:])
	}
	var c Config
	f := program.NewFlags("lease", usage, errOut)
	names := []string{pleachName, etcdName}
	systems := f.String("systems", strings.Join(names, ","), "`systems` to measure")
	f.IntVar(&c.Processes, "processes", 3, "number `N` of processes")
	f.IntVar(&c.Leases, "leases", 30, "`number` of leases")
	f.IntVar(&c.Kills, "kills", 20, "`number` of kills of each system")
	f.DurationVar(&c.TTL, "ttl", 2*time.Second, "`time` that a lease is valid without a renewal")
	f.Uint64Var(&c.Seed, "seed", 1, "`seed` of the pauses between kills")
	asJSON := f.Bool("json", false, "print JSON")
	if err := program.Parse(f, args[1:]); err != nil {
		return err
	}
	var err error
	c.Systems, err = program.Choose(*systems, names)
	if err != nil {
		return err
	}
	if c.Processes < 3 || c.Leases < 1 || c.Kills < 1 || c.TTL < 100*time.Millisecond {
		return errors.New("choose 3 --processes or more, a lease, a kill, and a --ttl of 100ms or more")
	}
	results, err := c.measure(ctx)
	return errors.Join(err, write(out, results, *asJSON))
}

// measure measures all systems in turns, a kill at a time.
func (c *Config) measure(ctx context.Context) (results []Result, err error) {
	var all []*contest
	defer func() {
		for _, k := range all {
			k.close()
		}
	}()
	for _, name := range c.Systems {
		k, err := c.start(ctx, name)
		if k != nil {
			all = append(all, k)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	for range c.Kills {
		for _, k := range all {
			time.Sleep(time.Duration(rng.Int64N(int64(c.TTL / 3)))) // anywhere between two renewals
			if err := k.killHolder(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", k.system, err)
			}
		}
	}
	for _, k := range all {
		results = append(results, k.result(c))
	}
	return results, nil
}

// result sums up what a contest has measured.
func (k *contest) result(c *Config) Result {
	slices.Sort(k.vacant)
	at := func(p int) float64 { return bench.Millis(bench.Percentile(k.vacant, p)) }
	return Result{
		System: k.system, Processes: c.Processes, TTL: bench.Millis(c.TTL), Kills: c.Kills, Leases: len(k.vacant),
		P50: at(50), P99: at(99), Max: at(100), TwoHolders: k.two,
	}
}

func write(w io.Writer, results []Result, asJSON bool) error {
	if len(results) == 0 || asJSON {
		if len(results) == 0 {
			return nil
		}
		return bench.WriteResults(w, results)
	}
	slices.SortStableFunc(results, func(a, b Result) int { return cmp.Compare(a.P50, b.P50) })
	if _, err := fmt.Fprintf(w, "%-8s %8s %8s %8s %10s %10s %10s %12s\n", "", "ttl ms", "kills", "leases", "p50 ms",
		"p99 ms", "max ms", "two holders"); err != nil {
		return err
	}
	for _, r := range results {
		if _, err := fmt.Fprintf(w, "%-8s %8.0f %8d %8d %10.1f %10.1f %10.1f %12d\n", r.System, r.TTL, r.Kills, r.Leases,
			r.P50, r.P99, r.Max, r.TwoHolders); err != nil {
			return err
		}
	}
	return nil
}
