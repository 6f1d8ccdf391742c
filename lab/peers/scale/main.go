// Command scale measures what a member of memberlist or serf costs as its group grows,
// with the fields of pleach-lab bench scale: memory, goroutines, idle processor time, and the
// time until all survivors know of a death.
//
// All members are in this process, over loopback, one system and one size after the
// other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/peers/internal/program"
)

const usage = `Measure what a member of memberlist or serf costs as its group grows. All members are
in this process and talk over loopback, with DefaultLANConfig. Memory, goroutines and
idle processor time are per member, as in pleach-lab bench scale; "known" is from before
a member is shut down without leaving until the last survivor has dropped it.

Usage: go run ./scale [flags]

`

func main() {
	program.Main("scale", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// command is what was asked for.
type command struct {
	systems []string
	members []int
	kills   int
	idle    time.Duration
	json    bool
}

// run measures, and writes what was measured even if it ends early.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	c, err := parse(args, errOut)
	if err != nil {
		return err
	}
	var results []result
	for _, name := range c.systems {
		for _, members := range c.members {
			r, err := measure(ctx, c, name, members)
			if err != nil {
				return errors.Join(err, write(out, results, c.json))
			}
			results = append(results, r)
		}
	}
	return write(out, results, c.json)
}

func parse(args []string, errOut io.Writer) (*command, error) {
	var c command
	f := program.NewFlags("scale", usage, errOut)
	chosen := f.String("systems", "memberlist,serf", "`systems` to measure")
	sizes := f.String("members", "64,256", "`numbers` of members; each is measured")
	f.IntVar(&c.kills, "kills", 3, "number `K` of kills at each size")
	f.DurationVar(&c.idle, "idle", 5*time.Second, "`time` for which idle members are watched")
	f.BoolVar(&c.json, "json", false, "print JSON")
	if err := program.Parse(f, args); err != nil {
		return nil, err
	}
	var err error
	c.systems, err = program.Choose(*chosen, []string{"memberlist", "serf"})
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 4 || n > 4096 {
			return nil, fmt.Errorf("--members %s: choose numbers between 4 and 4096, as in 64,256", *sizes)
		}
		c.members = append(c.members, n)
	}
	if c.kills < 1 || 2*c.kills >= slices.Min(c.members) {
		return nil, fmt.Errorf("--kills %d: choose at least 1 and fewer than half of the members", c.kills)
	}
	return &c, nil
}

func write(w io.Writer, results []result, asJSON bool) error {
	if len(results) == 0 {
		return nil
	}
	if asJSON {
		return bench.WriteResults(w, results)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s %8s %8s %11s %8s %17s\n", "system", "members", "heap", "goroutines", "idle", "known p50/p99")
	for _, r := range results {
		fmt.Fprintf(&b, "%-11s %8d %5.0f kB %11.1f %7.3f%% %17s\n",
			r.System, r.Members, r.HeapKB, r.Goroutines, r.IdleCPU, fmt.Sprintf("%.0f/%.0f ms", r.ViewP50, r.ViewP99))
		if missed := r.Rounds - r.Complete; missed > 0 {
			fmt.Fprintf(&b, "%d of %d deaths were not known to all within %v\n", missed, r.Rounds, limitOfKill)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
