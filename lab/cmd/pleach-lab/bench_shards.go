package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/shards"
)

// shardsCommand measures partitions that change their owners.
type shardsCommand struct {
	config shards.Config
	json   bool
}

func newBenchShards() *cobra.Command {
	var s shardsCommand
	cmd := &cobra.Command{
		Use:   "shards",
		Short: "Measure how soon partitions are owned again, and that no request has two owners",
		Long: `Start a group, all members in this process, over TCP, that divides partitions among its
members (package shard). Members are killed, one after the other, and started again: the
time is measured from the death until each partition of the dead member is owned again,
and how many partitions have moved, and the fewest possible. With a lease, a new owner
waits for it, because the dead member might live. With --lease -1s owners exclude each
other by their fencing tokens alone, and nothing waits.

Then all members are restarted, one after the other, while clients make requests: each
asks any member for the owner of a key, and has that one serve it. An observer in the same
process counts requests that were served by two owners at a time, by a token that another
process has used, or by a token below one that was used before. Ctrl-C ends the run.`,
		Example: `  pleach-lab bench shards
  pleach-lab bench shards --members 16 --partitions 1024 --lease -1s --json
  pleach-lab bench shards --members 5 --trials 20 --lease 300ms`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&s.config.Members, "members", 16, "`number` of members")
	f.IntVar(&s.config.Partitions, "partitions", 1024, "`number` of partitions")
	f.DurationVar(&s.config.Lease, "lease", time.Second, "`time` that a new owner waits for one that is gone; -1s: none")
	f.IntVar(&s.config.Trials, "trials", 10, "`number` of members that are killed")
	f.IntVar(&s.config.Clients, "clients", 16, "`number` of clients during the restarts")
	f.Uint64Var(&s.config.Seed, "seed", 1, "`seed` that chooses members and keys")
	f.BoolVar(&s.json, "json", false, "print JSON")
	return cmd
}

func (s *shardsCommand) run(cmd *cobra.Command) error {
	if err := s.config.Check(); err != nil {
		return err
	}
	return measure(cmd, s.config.Steps(), func(ctx context.Context, bar *progress) (measured, error) {
		s.config.Progress = bar.describe
		result, err := shards.Run(ctx, s.config)
		m := measured{done: bar.stop(), of: s.config.Steps(), what: "steps"}
		if err == nil && ctx.Err() == nil {
			m.write = func(w io.Writer) error { return s.write(w, &result) }
			if wrong := result.Wrong(); wrong > 0 {
				err = fmt.Errorf("%d requests were served by two owners", wrong)
			}
		}
		return m, err
	})
}

func (s *shardsCommand) write(w io.Writer, r *shards.Result) error {
	if s.json {
		return bench.WriteResults(w, []shards.Result{*r})
	}
	lease := "no lease"
	if r.LeaseMS > 0 {
		lease = fmt.Sprintf("a lease of %v ms", r.LeaseMS)
	}
	_, err := fmt.Fprintf(w, `%d partitions over %d members, %s; the largest share is %.2f of the mean

killed            %d members
owned again       %.1f ms p50, %.1f ms p99, %.1f ms at most
moved             %.2f of the minimum after a death, %.2f after a join

restarted         %d members under %d requests, of which %d were retried
requests          %.1f ms p99, %.1f ms at most
two owners        %d
same token        %d
older token       %d
`, r.Partitions, r.Members, lease, r.Largest, r.Kills, r.P50, r.P99, r.Max, r.MovedKill, r.MovedJoin,
		r.Restarts, r.Requests, r.Retried, r.RequestP99, r.RequestMax, r.TwoOwners, r.SameToken, r.OldToken)
	return err
}
