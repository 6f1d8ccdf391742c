// Command pleach-sql runs SQL queries with all processes of a job, each with a DuckDB of its
// own, and completes with the right answer although processes die.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

// run is all of main but the exit, which would skip what is deferred.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// The first Ctrl-C asks, the second kills.
	context.AfterFunc(ctx, stop)

	err := newRoot().ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "pleach-sql: interrupted:", err)
		return exitInterrupted
	}
	if s, ok := errors.AsType[said](err); !ok || s.here {
		fmt.Fprintln(os.Stderr, "pleach-sql:", err)
	}
	if _, ok := errors.AsType[failure](err); ok {
		return exitFailure
	}
	return exitUsage
}

// Exit codes other than 0, as those of pleach.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// failure is an error that is not about the command line.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pleach-sql",
		Short: "SQL with many processes that finishes even when some die",
		Long: `Run SQL queries with all processes of a job, each with a DuckDB of its own. When
processes die, the others read their partitions and do their part again, and nothing else.`,
		Example: `  pleach-sql import --parts 8 --out shop sales=sales.csv items='items-*.parquet'
  pleach run -n 8 pleach-sql run --data shop 'SELECT item, sum(price) FROM sales GROUP BY item' --out sums.csv
  pleach-sql explain --data shop 'SELECT name, count(*) FROM sales JOIN items USING (item) GROUP BY name'
  pleach-sql generate --sf 1 --parts 8 --replicas 2 --out tpch1
  pleach run -n 8 --kill '3@/^phase orders/' pleach-sql run --data tpch1 --query q3 --phases`,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, // run prints them
		SilenceUsage:  true, // errors say what to do
	}
	root.AddCommand(newImport(), newGenerate(), newRun(), newExplain(), newBench(), newWorker())
	return root
}
