package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/silent"
)

// silentCommand measures what members cost that die without a sign.
type silentCommand struct {
	config              silent.Config
	ranks, rate, versus string
	json                bool
}

func newBenchSilent() *cobra.Command {
	s := silentCommand{config: silent.Config{Systems: []string{"pleach"}, Command: workerCommand("silent")}}
	cmd := &cobra.Command{
		Use:   "silent",
		Short: "Measure broadcasts past members that die without a sign",
		Long: `Start a group of processes on this host, over TCP, with views and all defaults. Rank 0
broadcasts at a steady pace. Then members are stopped (SIGSTOP): their sockets stay open
and accept all data sent to them, so that nobody knows that they are dead until a view
without them.

Times are from before the root's call until the last live member's program has the message.
Before is the median of the messages sent before the stop. First, median and worst are of
those sent from then until the view. A message that some live member never gets is
incomplete, and has no time. Messages are what a live member receives for a broadcast, with
all that members send each other besides.

With --rate full, the root broadcasts as fast as flow control lets it. Rates are those of
the slowest live member before the stop, and from then until the view. Lost is how many
messages some live member lacks at the end.

With --compare bare, the same tree without correction is measured in turns with Pleach.
Those below an unresponsive member get nothing there. lab/peers compares with memberlist,
gossipsub, NATS and gRPC in the same way.`,
		Example: `  pleach-lab bench silent
  pleach-lab bench silent --members 32 --compare bare --json
  pleach-lab bench silent --members 64 --silent 10%
  pleach-lab bench silent --members 16 --rate full --size 8192`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&s.config.Members, "members", 16, "number `N` of members, each a process")
	f.StringVar(&s.ranks, "silent", "1", "`ranks` that are stopped, all at once, or a share of all members, as in 10%")
	f.StringVar(&s.rate, "rate", "50", "`messages` a second, or full")
	f.IntVar(&s.config.Size, "size", 64, "size of a message, in `bytes`")
	f.IntVar(&s.config.Runs, "runs", 4, "`number` of runs of each system")
	f.DurationVar(&s.config.Before, "before", 2*time.Second, "`time` of messages before members are stopped")
	f.DurationVar(&s.config.After, "after", 3*time.Second, "`time` of messages after that")
	f.StringVar(&s.versus, "compare", "", "`system` to measure too: bare")
	f.BoolVar(&s.json, "json", false, "print JSON")
	cli.Complete(cmd, "compare", "bare")
	return cmd
}

func (s *silentCommand) run(cmd *cobra.Command) error {
	if s.versus != "" {
		if s.versus != "bare" {
			return fmt.Errorf("--compare %s: choose bare", s.versus)
		}
		s.config.Systems = append(s.config.Systems, s.versus)
	}
	if err := s.config.ParseRate(s.rate); err != nil {
		return err
	}
	if err := s.config.ParseRanks(s.ranks); err != nil {
		return err
	}
	if err := s.config.Check(); err != nil {
		return err
	}
	steps := s.config.Runs * len(s.config.Systems)
	return measure(cmd, steps, func(ctx context.Context, bar *progress) (measured, error) {
		s.config.Progress = bar.update
		results, err := silent.Run(ctx, s.config)
		m := measured{done: bar.stop(), of: steps, what: "runs"}
		if len(results) > 0 {
			m.write = func(w io.Writer) error { return s.write(w, results) }
		}
		return m, err
	})
}

func (s *silentCommand) write(w io.Writer, results []silent.Result) error {
	if s.json {
		return bench.WriteResults(w, results)
	}
	return silent.WriteTable(w, s.config, results)
}

// builtinSilent returns one of the systems that this program can run.
func builtinSilent(name string) silent.System {
	systems := silent.Builtin()
	i := slices.IndexFunc(systems, func(s silent.System) bool { return s.Name == name })
	return systems[max(i, 0)]
}
