package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench/sort"
)

// benchSortCommand measures pleach sort.
type benchSortCommand struct {
	config  sort.Config
	compare string
	json    bool
}

func newBenchSort() *cobra.Command {
	s := benchSortCommand{config: sort.Config{Command: workerCommand("sort")}}
	cmd := &cobra.Command{
		Use:   "sort",
		Short: "Measure pleach sort and GNU sort, and the cost of a killed process",
		Long: `Sort a file of records of 100 bytes with processes on this host, over TCP (pleach sort).
The file and the outputs are in the directory for temporary files (TMPDIR), which needs
room for three times the records.

--compare gnu runs LC_ALL=C sort --parallel=2 -o OUTPUT INPUT in turns with it, with the same
file: lines of 100 bytes that begin with a key of ten random cli.Printable characters. GNU sort
writes one file, pleach sort one for each process; their bytes in order must be the same.
The time is that from before the first process starts until the last one has ended.

A random process is killed (SIGKILL) in the middle of each phase: sample, exchange, sort
and write. Measure how much longer the job takes than without a failure:

  run-through  the survivors take over the dead process's task
  restart      as soon as the death is seen all others are killed, and the job is started
               again

In every trial each of these is run once, one after the other, with the same victim.`,
		Example: `  pleach-lab bench sort
  pleach-lab bench sort --records 10000000 --members 8 --trials 11 --compare gnu --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&s.config.Records, "records", 1_000_000, "number `N` of records")
	f.IntVar(&s.config.Members, "members", 8, "number `N` of processes")
	f.IntVar(&s.config.Trials, "trials", 3, "number `T` of trials")
	f.Uint64Var(&s.config.Seed, "seed", 1, "`seed` that chooses the records, and the process that is killed")
	f.StringVar(&s.compare, "compare", "", "run another `system` in turns with it: gnu")
	f.BoolVar(&s.json, "json", false, "print JSON")
	return cmd
}

func (s *benchSortCommand) run(cmd *cobra.Command) error {
	switch s.compare {
	case "", "gnu":
		s.config.GNU = s.compare != ""
	default:
		return fmt.Errorf("--compare %s: choose gnu", s.compare)
	}
	if err := s.config.Check(); err != nil {
		return err
	}
	return measure(cmd, s.config.Runs(), func(ctx context.Context, bar *progress) (measured, error) {
		s.config.Progress = bar.update
		result, err := sort.Run(ctx, s.config)
		m := measured{done: result.Trials, of: s.config.Trials, what: "trials"}
		if result.Trials > 0 {
			m.write = func(w io.Writer) error { return s.write(w, &result) }
		}
		return m, err
	})
}

func (s *benchSortCommand) write(w io.Writer, r *sort.Result) error {
	if s.json {
		return json.NewEncoder(w).Encode(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d records of 100 bytes, %d processes, %s: %.0f ms, %.0f ms of processor time\n",
		r.Records, r.Members, cli.Count(r.Trials, "trial"), r.Job, r.JobCPU)
	if r.GNU > 0 {
		fmt.Fprintf(&b, "GNU sort: %.0f ms, %.0f ms of processor time; pleach takes %.2f of its time\n", r.GNU, r.GNUCPU,
			r.OfGNU)
	}
	fmt.Fprintf(&b, "\n%-20s %12s %12s %9s %9s\n", "killed in phase", "run-through", "restart", "ratio", "equal")
	for _, k := range r.Killed {
		fmt.Fprintf(&b, "%-20s %9.0f ms %9.0f ms %9.2f %9v\n", k.Phase, k.RunThrough, k.Restart, k.Ratio, k.Equal)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
