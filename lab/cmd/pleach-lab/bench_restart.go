package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench/restart"
)

// restartCommand measures what a failure costs a job.
type restartCommand struct {
	config restart.Config
	json   bool
}

func newBenchRestart() *cobra.Command {
	r := restartCommand{config: restart.Config{Command: workerCommand("restart")}}
	cmd := &cobra.Command{
		Use:   "restart",
		Short: "Measure the cost of a killed process for a job, with takeover and with a restart",
		Long: `Run a job of processes on this host, over TCP: rounds in which every task computes and
an Allreduce adds up the results. One random process is killed (SIGKILL) at a random
moment. Measure how much longer the job takes than without a failure, from its first
start until its last process has the result:

  run-through          the survivors take over the dead process's task and compute it
                       in addition to their own: there is a processor to spare
  run-through, serial  the survivor with two tasks computes one after the other, as if
                       there was none to spare: all others wait for it in each round
  restart, checkpoint  as soon as the death is seen all others are killed, and the job
                       is started again from its last checkpoint
  restart, start       the same, from the start of the job

In every trial each way is run once, one after the other, with the same victim at the
same part of the job. The results of all runs must be equal, bit by bit.

A task computes by waiting for the given time: so many processes would share this
host's processors, and those of a real job would not. A restart costs more elsewhere:
here there is no scheduler, programs start at once, and only the checkpoint is loaded.`,
		Example: `  pleach-lab bench restart
  pleach-lab bench restart --members 8 --rounds 200 --compute 20ms --checkpoint 50
  pleach-lab bench restart --trials 20 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&r.config.Members, "members", 8, "number `N` of processes")
	f.IntVar(&r.config.Rounds, "rounds", 100, "number `R` of rounds")
	f.DurationVar(&r.config.Compute, "compute", 10*time.Millisecond, "`time` a task computes in a round")
	f.IntVar(&r.config.Elements, "elements", 1000, "number `E` of float64 that are added up in a round")
	f.IntVar(&r.config.Every, "checkpoint", 20, "number `C` of rounds from one checkpoint to the next")
	f.IntVar(&r.config.Trials, "trials", 5, "number `T` of trials")
	f.Uint64Var(&r.config.Seed, "seed", 1, "`seed` that chooses the process that is killed, and when")
	f.BoolVar(&r.json, "json", false, "print JSON")
	return cmd
}

func (r *restartCommand) run(cmd *cobra.Command) error {
	if err := r.config.Check(); err != nil {
		return err
	}
	return measure(cmd, r.config.Runs(), func(ctx context.Context, bar *progress) (measured, error) {
		r.config.Progress = bar.update
		result, err := restart.Run(ctx, r.config)
		m := measured{done: result.Trials, of: r.config.Trials, what: "trials"}
		if result.Trials > 0 {
			m.write = func(w io.Writer) error { return r.write(w, result) }
		}
		return m, err
	})
}

func (r *restartCommand) write(w io.Writer, result restart.Result) error {
	if r.json {
		return json.NewEncoder(w).Encode(result)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d processes, %d rounds of %v and an Allreduce of %d float64: %.0f ms without a failure\n",
		result.Members, result.Rounds, r.config.Compute, result.Elements, result.Job)
	fmt.Fprintf(&b, "one killed at a random moment, a checkpoint every %d rounds, %s; ms lost\n\n", result.Every,
		cli.Count(result.Trials, "trial"))
	fmt.Fprintf(&b, "%-20s %9s %9s %9s %9s\n", "", "p50", "min", "max", "of job")
	for _, way := range result.Lost {
		fmt.Fprintf(&b, "%-20s %9.0f %9.0f %9.0f %8.0f%%\n", way.Way, way.P50, way.Min, way.Max, 100*way.Part)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
