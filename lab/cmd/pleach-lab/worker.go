package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench/broadcast"
	"github.com/pleach-go/pleach/lab/bench/collectives"
	"github.com/pleach-go/pleach/lab/bench/cp"
	"github.com/pleach-go/pleach/lab/bench/restart"
	"github.com/pleach-go/pleach/lab/bench/silent"
	"github.com/pleach-go/pleach/lab/bench/sort"
	"github.com/pleach-go/pleach/lab/bench/stabilization"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/lab/experiments/calibrate"
)

// A worker is what a process does that a measurement has started.
type worker struct {
	arguments int
	serve     func(ctx context.Context, args []string) error
}

// workers are all of them. Those without a context live until their parent says so: Ctrl-C
// reaches them, too, and is the parent's.
var workers = map[string]worker{
	"broadcast": {3, func(_ context.Context, args []string) error { // SYSTEM SIZE BURST
		size, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		burst, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return broadcast.ServeMember(context.Background(), args[0], size, burst)
	}},
	"calibrate": {1, func(ctx context.Context, args []string) error {
		return calibrate.Member(ctx, os.Stdout, args[0] == "shared")
	}},
	"collectives": {0, func(ctx context.Context, _ []string) error { return collectives.Serve(ctx) }},
	"cp":          {1, func(ctx context.Context, args []string) error { return cp.Serve(ctx, args[0]) }},
	"echo": {0, func(ctx context.Context, _ []string) error {
		return calibrate.ServeEcho(ctx, os.Stdin,
			os.Stdout)
	}},
	"restart": {1, func(ctx context.Context, args []string) error { return restart.Serve(ctx, args[0]) }},
	"silent": {1, func(_ context.Context, args []string) error {
		return silent.Serve(context.Background(), builtinSilent(args[0]))
	}},
	"sort": {2, func(ctx context.Context, args []string) error { return sort.Serve(ctx, args[0], args[1]) }},
	"stabilization": {1, func(_ context.Context, args []string) error {
		return stabilization.Serve(args[0], stabilization.PleachMember)
	}},
	"task": {1, func(ctx context.Context, args []string) error {
		return experiments.ServeTask(ctx, args[0], os.Stdin, os.Stdout)
	}},
}

// workerCommand is the command line of a worker, with what else is known of it.
func workerCommand(name string, args ...string) []string {
	if _, ok := workers[name]; !ok {
		panic("no worker " + name)
	}
	return append([]string{"pleach-lab", "worker", name}, args...)
}

// newWorker is what measurements start.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker NAME [ARGUMENT...]",
		Short:  "One process of a measurement, started by it",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) != 1+workers[args[0]].arguments || workers[args[0]].serve == nil {
				return fmt.Errorf("%q: measurements start workers themselves, see pleach-lab bench --help", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Failure(workers[args[0]].serve(cmd.Context(), args[1:]))
		},
	}
}
