package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench/stabilization"
	"github.com/pleach-go/pleach/lab/bench/ulfm"
)

// stabilizationCommand measures how soon survivors agree.
type stabilizationCommand struct {
	config            stabilization.Config
	compare, ulfmRoot string
	json              bool
}

// systemULFM is what can be measured too.
const systemULFM = "ulfm"

func newBenchStabilization() *cobra.Command {
	s := stabilizationCommand{config: stabilization.Config{System: "pleach", Command: workerCommand("stabilization")}}
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
their threads got a processor.

With --compare ulfm, an MPI program is measured too, in turns with Pleach: Open MPI 5
with ULFM, over TCP on loopback (btl tcp,self). Its ranks make one Allreduce after the
other. One rank kills itself, and the others revoke the communicator, shrink it to the
living and agree. There is one job for each kill. Times are until the first or the last
survivor's call returned. The ratio is Pleach's p50 to that of shrink: both end when all
survivors know the same members. Open MPI is looked for in PATH or, with --ulfm-root, in
a directory by chroot, which takes root. Where there is none, Pleach is measured alone.`,
		Example: `  pleach-lab bench stabilization
  pleach-lab bench stabilization --members 47 --kills 100 --json
  pleach-lab bench stabilization --members 47 --kills 100 --coordinator
  pleach-lab bench stabilization --members 8 --compare ulfm --ulfm-root /srv/trixie`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&s.config.Members, "members", 16, "number `N` of members, each a process")
	f.IntVar(&s.config.Kills, "kills", 20, "number `K` of kills, one after the other")
	f.BoolVar(&s.config.Coordinator, "coordinator", false,
		"kill the coordinator each time, instead of a random other member")
	f.Uint64Var(&s.config.Seed, "seed", 1, "`seed` that chooses the members that are killed")
	f.StringVar(&s.compare, "compare", "", "`system` to measure too: ulfm")
	f.StringVar(&s.ulfmRoot, "ulfm-root", "",
		"root `directory` of a system that has Open MPI with ULFM, as make ulfmroot makes it")
	f.BoolVar(&s.json, "json", false, "print JSON")
	cli.Complete(cmd, "compare", systemULFM)
	return cmd
}

func (s *stabilizationCommand) run(cmd *cobra.Command) error {
	if err := s.check(); err != nil {
		return err
	}
	return measure(cmd, s.config.Kills, func(ctx context.Context, bar *progress) (m measured, err error) {
		program, err := s.findULFM(ctx, cmd.ErrOrStderr())
		if err != nil {
			return m, err
		}
		defer program.Remove()
		s.config.Progress = bar.update
		var report stabilizationJSON
		report.Results = make([]stabilization.Result, 1)
		if program == nil {
			report.Results[0], err = stabilization.Run(ctx, s.config)
		} else {
			report.ULFM = new(ulfm.Result)
			report.Results[0], *report.ULFM, err = stabilization.RunBesideULFM(ctx, s.config, program)
		}
		m = measured{done: report.Results[0].Kills, of: s.config.Kills, what: "kills"}
		if m.done > 0 {
			m.write = func(w io.Writer) error { return s.write(w, report) }
		}
		return m, err
	})
}

func (s *stabilizationCommand) check() error {
	switch {
	case s.compare != "" && s.compare != systemULFM:
		return fmt.Errorf("--compare %s: choose %s", s.compare, systemULFM)
	case s.ulfmRoot != "" && s.compare == "":
		return fmt.Errorf("--ulfm-root: only with --compare %s", systemULFM)
	}
	return s.config.Check()
}

// findULFM returns the program to measure too. If there is none, it says how to get
// one.
func (s *stabilizationCommand) findULFM(ctx context.Context, messages io.Writer) (*ulfm.Program, error) {
	if s.compare == "" {
		return nil, nil
	}
	program, without, err := ulfm.Find(ctx, s.ulfmRoot)
	if err == nil && without != "" {
		fmt.Fprintf(messages,
			"ulfm: not found: %s. Pleach is measured alone. Install Open MPI 5 with ULFM, or make a root directory that has it (make ulfmroot DIR=/srv/trixie) and name it by --ulfm-root.\n", without)
	}
	return program, err
}

// stabilizationJSON is what --json prints.
type stabilizationJSON struct {
	Results []stabilization.Result `json:"results"`
	ULFM    *ulfm.Result           `json:"ulfm,omitempty"`
}

func (s *stabilizationCommand) write(w io.Writer, report stabilizationJSON) error {
	if s.json {
		return json.NewEncoder(w).Encode(report)
	}
	var b strings.Builder
	r := report.Results[0]
	victim := "a member"
	if r.Coordinator {
		victim = "the coordinator"
	}
	fmt.Fprintf(&b, "%d members in processes of their own, %d times %s was killed, %d views; ms\n\n", r.Members, r.Kills,
		victim, r.Views)
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
	if u := report.ULFM; u != nil {
		fmt.Fprintf(&b, "\nOpen MPI %s with ULFM in turns with it, %d ranks, %d times a rank was killed; ms, p50\n\n",
			u.Version, u.Ranks, u.Kills)
		fmt.Fprintf(&b, "%9s %12s %11s %16s %8s %13s %10s\n", "complete", "first error", "last error", "revoke + shrink",
			"+ agree", "pleach: view", "of shrink")
		fmt.Fprintf(&b, "%9d %12.2f %11.2f %16.2f %8.2f %13.2f %10s\n", u.Complete, u.FirstErrorP50, u.LastErrorP50,
			u.ShrinkP50, u.AgreeP50, r.P50, times(u.Ratio))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
