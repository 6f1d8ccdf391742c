package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/internal/bench"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
)

// benchCommand measures queries.
type benchCommand struct {
	config bench.Config
	scale  float64
	json   bool
}

func newBench() *cobra.Command {
	b := benchCommand{config: bench.Config{Command: []string{"pleach-sql", "worker"}}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a query: next to one DuckDB, and with a killed process next to a restart",
		Long: `Run a query with a job of processes on this host, over TCP, and measure from its first
stage until the result is there:

  ms                the job, and of_duckdb: in relation to one DuckDB with two threads
  overhead          in relation to the same job without fault tolerance
  lost_ms           how much longer the job takes when a random process is killed (SIGKILL)
                    in the middle of a stage
  work_ms           the processor time of that process in the job
  restart_lost_ms   how much longer it takes without fault tolerance: as soon as the death
                    is seen all others are killed, and the job is started again

In every trial each way is run once, one after the other. Figures are medians. The data
is generated first, unless --data has it.`,
		Example: `  pleach-sql bench --members 8 --sf 1 --query q3 --trials 3
  pleach-sql bench --members 8 --data tpch4 --query q18 --trials 11 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&b.config.Members, "members", 8, "number `N` of processes")
	f.Float64Var(&b.scale, "sf", 1, "scale `factor` of the data that is generated")
	f.StringVar(&b.config.Data, "data", "", "`directory` that generate has written, instead of --sf")
	f.StringVar(&b.config.Query, "query", "q3", "`name` of the query")
	f.IntVar(&b.config.Trials, "trials", 5, "number `T` of trials")
	f.BoolVar(&b.config.Deaths, "deaths", true, "kill processes, and start jobs again")
	f.Uint64Var(&b.config.Seed, "seed", 1, "`seed` that chooses the processes that are killed")
	f.BoolVar(&b.json, "json", false, "print JSON")
	return cmd
}

// Limits of what is asked for: more is a typing error.
const (
	maxMembers = 256
	maxTrials  = 1000
)

func (b *benchCommand) run(cmd *cobra.Command) error {
	switch c := &b.config; {
	case c.Members < 2 || c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose a number between 2 and %d", c.Members, maxMembers)
	case c.Trials < 1 || c.Trials > maxTrials:
		return fmt.Errorf("--trials %d: choose a number between 1 and %d", c.Trials, maxTrials)
	}
	if b.config.Data == "" {
		remove, err := b.generate(cmd)
		if err != nil {
			return failure{err}
		}
		defer remove()
	}
	var bar progress
	b.config.Progress = func(jobs, all int) {
		if jobs == 1 {
			bar = newProgress(cmd.ErrOrStderr(), "jobs", all)
		}
		bar.update(jobs)
	}
	result, err := bench.Run(cmd.Context(), b.config)
	bar.stop()
	if err != nil {
		return failure{err}
	}
	if b.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
	}
	return writeBench(cmd.OutOrStdout(), result)
}

// generate writes the data to a directory that is removed afterwards.
func (b *benchCommand) generate(cmd *cobra.Command) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "pleach-sql-")
	if err != nil {
		return nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	bar := newProgress(cmd.ErrOrStderr(), "parts", b.config.Members)
	b.config.Data = filepath.Join(dir, "data")
	_, err = tpchdata.Generate(cmd.Context(), tpchdata.Config{
		Scale: b.scale, Parts: b.config.Members, Replicas: 1, Dir: b.config.Data, Progress: bar.update,
	})
	bar.stop()
	if err != nil {
		remove()
	}
	return remove, err
}

func writeBench(w io.Writer, r *bench.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at scale factor %v, %d processes, medians of %d trials; one DuckDB with 2 threads: %.0f ms\n",
		r.Query, r.Scale, r.Members, r.Trials, r.Alone)
	fmt.Fprintf(&b, "%.0f ms, %.2f of DuckDB; %.3f of the job without fault tolerance\n", r.Took, r.Ratio, r.Overhead)
	if len(r.Killed) > 0 {
		writeDeaths(&b, r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeDeaths(b *strings.Builder, r *bench.Result) {
	fmt.Fprintf(b, "%-12s %9s %9s %12s %7s %6s\n", "killed in", "lost ms", "work ms", "restart ms", "ratio", "equal")
	for _, k := range r.Killed {
		fmt.Fprintf(b, "%-12s %9.0f %9.0f %12.0f %7.2f %6v\n", k.Phase, k.Lost, k.Work, k.Restart, k.Ratio, k.Equal)
	}
}

// newWorker is what bench starts.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker WORK",
		Short:  "One process of a job, started by bench",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := bench.Serve(cmd.Context(), args[0], cmd.OutOrStdout(), func(ctx context.Context, j sql.Job) error {
				report := j.Done
				return runJob(ctx, j, func(_ *pleach.World, r *sql.Result) { report(r) })
			})
			if err != nil {
				return failure{err}
			}
			return nil
		},
	}
}
