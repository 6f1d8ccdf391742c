// Command convergence measures how long Pleach and systems that are in use take
// to notice that a process was killed: from the kill until the last survivor has
// dropped it. Serf and memberlist keep a list for each member; only Pleach's
// survivors agree on one.
//
// Package lab/bench/stabilization measures. Every member is a process: this
// program starts itself as one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/stabilization"
	"github.com/pleach-go/pleach/lab/peers/internal/program"
)

const usage = `Measure how long survivors take to drop a member that was killed, for Pleach and
its peers, interleaved on this host. A killed member rejoins before the next kill.
Times are from before the kill until the last survivor has dropped it.

  pleach            all defaults
  memberlist        hashicorp/memberlist with DefaultLANConfig
  memberlist-tuned  as that, but probes every 200 ms (timeout 100 ms), suspicions
                    last a seventh, and gossip goes to 4 others every 20 ms
  serf              hashicorp/serf with its defaults, over DefaultLANConfig

Usage: go run ./convergence [flags]

`

// limit is how long survivors may take: memberlist needs ten seconds and more.
const limit = time.Minute

// systems are the members that this program can be.
var systems = []struct {
	name string
	run  func(context.Context, *stabilization.Survivor) error
}{
	{"pleach", stabilization.PleachMember},
	{"memberlist", memberlistSurvivor(standard)},
	{"memberlist-tuned", memberlistSurvivor(tuned)},
	{"serf", serfSurvivor},
}

func main() {
	program.Main("convergence", func(ctx context.Context) error { return run(ctx, os.Args, os.Stdout, os.Stderr) })
}

// run measures, or is a member: then it was started as "survivor".
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	if len(args) == 3 && args[0] == "survivor" {
		return serve(args[1], args[2])
	}
	c, err := parse(args[1:], errOut)
	if err != nil {
		return err
	}
	all := make([]stabilization.Config, len(c.systems))
	for i, name := range c.systems {
		all[i] = c.config
		all[i].System, all[i].Command, all[i].Limit = name, []string{"survivor", name}, limit
	}
	results, err := stabilization.RunInterleaved(ctx, all, c.turns)
	results = slices.DeleteFunc(results, func(r stabilization.Result) bool { return r.Kills == 0 })
	return errors.Join(err, write(out, results, c.json))
}

// command is what was asked for.
type command struct {
	config  stabilization.Config // of every system
	systems []string
	turns   int
	json    bool
}

func parse(args []string, errOut io.Writer) (*command, error) {
	var c command
	f := program.NewFlags("convergence", usage, errOut)
	chosen := f.String("systems", strings.Join(names(), ","), "`systems` to measure")
	f.IntVar(&c.config.Members, "members", 47, "number `N` of members, each a process")
	f.IntVar(&c.config.Kills, "kills", 10, "number `K` of kills of each system")
	f.IntVar(&c.turns, "turns", 2, "number `T` of turns that each system's kills are spread over")
	f.Uint64Var(&c.config.Seed, "seed", 1, "`seed` that chooses the members that are killed")
	f.BoolVar(&c.json, "json", false, "print JSON")
	if err := program.Parse(f, args); err != nil {
		return nil, err
	}
	if c.turns < 1 || c.turns > c.config.Kills {
		return nil, fmt.Errorf("--turns %d: choose a number between 1 and --kills, which is %d", c.turns, c.config.Kills)
	}
	var err error
	c.systems, err = program.Choose(*chosen, names())
	if err != nil {
		return nil, err
	}
	return &c, c.config.Check()
}

// serve is one member.
func serve(name, which string) error {
	for _, s := range systems {
		if s.name == name {
			return stabilization.Serve(which, s.run)
		}
	}
	return fmt.Errorf("there is no system %q", name)
}

func names() (all []string) {
	for _, s := range systems {
		all = append(all, s.name)
	}
	return all
}

func write(w io.Writer, results []stabilization.Result, asJSON bool) error {
	if len(results) == 0 {
		return nil
	}
	if asJSON {
		return bench.WriteResults(w, results)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d members in processes of their own, %d kills; ms\n\n", results[0].Members, results[0].Kills)
	fmt.Fprintf(&b, "%-17s %9s %9s %9s %9s %10s\n", "system", "complete", "p50", "p99", "max", "of pleach")
	for _, r := range results {
		ratio := "-"
		if first := results[0]; first.System == "pleach" && first.P50 > 0 && r.P50 > 0 {
			ratio = fmt.Sprintf("%.1f×", r.P50/first.P50)
		}
		fmt.Fprintf(&b, "%-17s %9d %9.1f %9.1f %9.1f %10s\n", r.System, r.Complete, r.P50, r.P99, r.Max, ratio)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
