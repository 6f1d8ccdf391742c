package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/bench/stabilization"
)

// stabilizationCommand measures how soon survivors agree.
type stabilizationCommand struct {
	config stabilization.Config
	json   bool
}

func newBenchStabilization() *cobra.Command {
	s := stabilizationCommand{config: stabilization.Config{System: "pleach", Command: []string{"pleach", "bench", "survivor"}}}
	cmd := &cobra.Command{
		Use:   "stabilization",
		Short: "Measure how soon survivors agree on a view without a member that was killed",
		Long: `Start a group of processes on this host, over TCP and with all defaults, and kill one
of them (SIGKILL) again and again: a random one or, with --coordinator, the one that
coordinates view changes, which is the lowest rank. A killed member is started again
and rejoins. The next kill comes when all members are in one view.

Times are from before the kill until the last survivor's program has a view without
the dead member. They have two parts: detection, until the first survivor suspects it,
and stabilization, from then on. A kill is complete if that takes no more than 10
seconds. Only complete kills have times; where there are none, times are 0.

All processes share this host's processors. With more than a few members for each
processor, times are mostly waiting for one. Each member gets its share, at least one,
as GOMAXPROCS, unless that is set. So the work of the survivors is reported too: the
processor time of all together from the kill to the last view, and how often one of
their threads got a processor.`,
		Example: `  pleach bench stabilization
  pleach bench stabilization --members 47 --kills 100 --json
  pleach bench stabilization --members 47 --kills 100 --coordinator`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&s.config.Members, "members", 16, "number `N` of members, each a process")
	f.IntVar(&s.config.Kills, "kills", 20, "number `K` of kills, one after the other")
	f.BoolVar(&s.config.Coordinator, "coordinator", false, "kill the coordinator each time, instead of a random other member")
	f.Uint64Var(&s.config.Seed, "seed", 1, "`seed` that chooses the members that are killed")
	f.BoolVar(&s.json, "json", false, "print JSON")
	return cmd
}

func (s *stabilizationCommand) run(cmd *cobra.Command) error {
	if err := s.config.Check(); err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr(), s.config.Kills)
	s.config.Progress = bar.update
	result, err := stabilization.Run(cmd.Context(), s.config)
	bar.stop()
	// What was measured before Ctrl-C or a failure is as good as the rest.
	if result.Kills > 0 {
		if err := s.write(cmd.OutOrStdout(), result); err != nil {
			return failure{err}
		}
	}
	switch {
	case cmd.Context().Err() != nil:
		return interruptedAfter(result.Kills, s.config.Kills, "kills")
	case err != nil:
		return failure{err}
	}
	return nil
}

func (s *stabilizationCommand) write(w io.Writer, r stabilization.Result) error {
	if s.json {
		return json.NewEncoder(w).Encode(struct {
			Results []stabilization.Result `json:"results"`
		}{[]stabilization.Result{r}})
	}
	var b strings.Builder
	victim := "a member"
	if r.Coordinator {
		victim = "the coordinator"
	}
	fmt.Fprintf(&b, "%d members in processes of their own, %d times %s was killed, %d views; ms\n\n", r.Members, r.Kills, victim, r.Views)
	fmt.Fprintf(&b, "%-14s %9s %9s %9s %9s\n", "", "complete", "p50", "p99", "max")
	fmt.Fprintf(&b, "%-14s %9d %9.2f %9.2f %9.2f\n", "kill to view", r.Complete, r.P50, r.P99, r.Max)
	fmt.Fprintf(&b, "%-14s %9s %9.2f\n", "detection", "", r.DetectionP50)
	fmt.Fprintf(&b, "%-14s %9s %9.2f %9.2f\n", "stabilization", "", r.StabilizationP50, r.StabilizationP99)
	if r.CPUP50 > 0 {
		fmt.Fprintf(&b, "%-14s %9s %9.2f   in %d timeslices\n", "survivors' CPU", "", r.CPUP50, r.Timeslices)
	}
	if r.Evicted > 0 {
		fmt.Fprintf(&b, "\n%d times the others removed a member that was alive.\n", r.Evicted)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// newBenchSurvivor is what bench stabilization starts.
func newBenchSurvivor() *cobra.Command {
	return &cobra.Command{
		Use:    "survivor first|again",
		Short:  "One member of a benchmark, started by bench stabilization",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := stabilization.Serve(args[0], stabilization.PleachMember); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}
