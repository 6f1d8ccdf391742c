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
	"github.com/pleach-go/pleach/lab/bench/silent"
	"github.com/pleach-go/pleach/lab/peers/internal/program"
)

const silentUsage = `Measure what members cost that die silently: their processes are stopped (SIGSTOP), in
the same way for Pleach and for its peers. Every member is a process of its own, and the
systems take turns. Only ratios within one run mean something.

Rank 0 broadcasts --rate messages a second. A message has a time if every live member gets it:
from before the root's call until the last one's program has it. Before is the median of
those sent before the stop. First, median and worst are of those sent from then until the
view without the silent members or, in systems without views, for --after.

Usage: go run . silent [flags]

`

// silentSystems are those that can be measured so, each with one member in this process.
func silentSystems() []silent.System {
	return append(silent.Builtin(),
		silent.System{Name: "nats", Start: silentNATS},
		silent.System{Name: "grpc", Start: silentGRPC},
		silent.System{Name: "memberlist", Start: silentMemberlist(gossipConfig)},
		silent.System{Name: "memberlist-defaults", Start: silentMemberlist(defaultGossip)},
		silent.System{Name: "gossipsub", Start: silentGossipsub},
	)
}

// serveSilent is one member's process.
func serveSilent(ctx context.Context, name string) error {
	systems := silentSystems()
	i := slices.IndexFunc(systems, func(s silent.System) bool { return s.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no system %q", name)
	}
	return silent.Serve(ctx, systems[i])
}

// runSilent measures, and writes what was measured even if it ends early.
func runSilent(ctx context.Context, args []string, out, errOut io.Writer) error {
	var names []string
	for _, s := range silentSystems() {
		names = append(names, s.Name)
	}
	c := silent.Config{Command: []string{os.Args[0], "silent-member"}}
	f := program.NewFlags("peers silent", silentUsage, errOut)
	f.IntVar(&c.Members, "members", 32, "number `N` of members, each a process")
	ranks := f.String("silent", "1", "`ranks` that are stopped, all at once, or a share of all members, as in 10%")
	systems := f.String("systems", strings.Join(names, ","), "`systems` to measure")
	rate := f.String("rate", "50", "`messages` a second, or full")
	f.IntVar(&c.Size, "size", 64, "size of a message, in `bytes`")
	f.IntVar(&c.Runs, "runs", 3, "`number` of runs of each system")
	f.DurationVar(&c.Before, "before", 2*time.Second, "`time` of messages before members are stopped")
	f.DurationVar(&c.After, "after", 3*time.Second, "`time` of messages after that")
	asJSON := f.Bool("json", false, "print JSON")
	if err := program.Parse(f, args); err != nil {
		return err
	}
	if err := errors.Join(c.ParseRate(*rate), c.ParseRanks(*ranks)); err != nil {
		return err
	}
	var err error
	c.Systems, err = program.Choose(*systems, names)
	if err != nil {
		return err
	}
	show, clear := progress(errOut, c.Members, c.Runs*len(c.Systems))
	c.Progress = show
	results, err := silent.Run(ctx, c)
	clear()
	if *asJSON {
		return errors.Join(err, bench.WriteResults(out, results))
	}
	return errors.Join(err, silent.WriteTable(out, c, results))
}

// retry tries again until it succeeds: processes start in any order.
func retry(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
