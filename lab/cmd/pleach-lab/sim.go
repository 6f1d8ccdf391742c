package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/experiments"
)

func newSim() *cobra.Command {
	var s simCommand
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulate broadcasts with dead processes in the LogP model",
		Long: `Simulate a broadcast many times in the LogP model and summarize the runs: coloring
latency (until the last live process has the message), quiescence latency (until the
last message is over), correction time, the longest gap that dissemination leaves, and
messages per process.

The same flags and seed give the same figures on any number of cores, and with either
engine. The sparse engine simulates only changes by the dead, up to a billion
processes. It takes interleaved trees with synchronized correction (checked,
opportunistic, optimized or safe) and processes that are dead from the start. The
events engine simulates every message of any broadcast. Auto, the default, is sparse
where that applies.

Disseminations: tree; gossip; ack, a tree with acknowledgments; big, a binomial graph;
bfb, a tree that restarts when a detector reports a death. The last three go without
correction.

Corrections: none, checked, throttled, opportunistic:D, optimized:D, safe:D (up to
distance D on each side), failure-proof:F (against F failures on the way), delayed:D
(after a delay of D), paced:D (with a delay before each message), patient:D (and at
least twice as long again as the tree took).`,
		Example: `  pleach-lab sim --shape optimal -P 65536 --faults 1%
  pleach-lab sim -P 1073741824 --faults 0.01% --runs 1
  pleach-lab sim -P 64 --correction opportunistic:2 --start overlapped --fail 3,7
  pleach-lab sim --dissemination gossip -P 4096 --faults 40 --runs 1000 --json
  pleach-lab sim --correction patient:8 --start overlapped --stretch 50
  pleach-lab sim --dissemination ack --shape lame:2 -P 1024
  pleach-lab sim -P 16 --fail 1 --die 5@12 --die 6@correction --timeline run.svg --trace -`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	s.addFlags(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if unknown := new(pflag.NotExistError); errors.As(err, &unknown) && unknown.GetSpecifiedName() == "zones" {
			return errors.New("--zones: sim knows one group; pleach-lab bench fleet --zones runs and measures a fleet of zones")
		}
		return err
	})
	return cmd
}

func (s *simCommand) run(cmd *cobra.Command) error {
	scenario, err := s.scenario(cmd)
	if err != nil {
		return err
	}
	out, report := cmd.OutOrStdout(), cmd.OutOrStdout()
	if s.trace == "-" {
		report = cmd.ErrOrStderr() // a reader of the trace expects nothing else
	}
	if err := s.observe(scenario, out); err != nil {
		return err
	}
	result, err := simulate(cmd.Context(), scenario, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if s.json {
		return s.writeJSON(report, scenario, result)
	}
	about := s.describeProtocol(scenario) + "; " + s.describeGroup(scenario)
	return writeTable(report, about, result)
}

// simulate runs the scenario, showing its progress on w.
func simulate(ctx context.Context, scenario *experiments.Scenario, w io.Writer) (*experiments.Report, error) {
	bar := newProgress(w, scenario.Runs)
	report, err := scenario.Run(ctx, bar.update)
	done := bar.stop()
	switch {
	case ctx.Err() != nil:
		return nil, cli.InterruptedAfter(done, scenario.Runs, "runs")
	case err != nil:
		return nil, cli.Failure(err)
	}
	return report, nil
}
