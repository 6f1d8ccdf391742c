// Command pleach draws broadcast trees, simulates broadcasts that finish although
// processes die, and runs, joins, inspects and measures groups that use them.
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
	// The first Ctrl-C asks, and a run that is under way ends; the second kills.
	context.AfterFunc(ctx, stop)

	err := newRoot().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "pleach:", err)
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pleach",
		Short: "Group communication that finishes although processes die",
		Long: `Pleach sends a message along a tree, as fast as the network allows, and closes the
gaps that dead processes leave from their neighbors on a ring. It also agrees on the
members of a group, and runs collective operations that survive deaths.

Use this command to run an agent on each host and to talk through it, to draw such
trees, to simulate broadcasts in the LogP model, to start groups of processes and inject
faults, to join and inspect running groups, and to measure them.`,
		Example: `  pleach tree --shape lame:3 -P 9
  pleach sim --shape optimal -P 65536 --faults 1%
  pleach join --create --listen 127.0.0.1:7000
  pleach agent --expect 3 db1:7000 db2:7000 db3:7000`,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, // run prints them
		SilenceUsage:  true, // errors say what to do
	}
	root.AddCommand(newAgent(), newSend(), newListen(), newQuery(), newCp(), newStatus(), newHealth(), newJoin(), newMembers(), newForceView(), newRaiseVersion(), newPs(), newReplay(), newTrace())
	root.AddCommand(newRun(), newSort(), newTree(), newSim(), newTune(), newReproduce(), newBench(), newVersion(), newMan())
	return root
}

// Exit codes beside 0. A script can tell a typing error from work that failed.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells have it: 128 + SIGINT
)

// failure is an error that is not the caller's: the disk is full, a run does
// not end. All others, cobra's included, are about usage.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// interruption is the end by Ctrl-C or another signal.
type interruption struct{ text string }

func (i interruption) Error() string { return i.text }

// interruptedAfter says how much of the work was done.
func interruptedAfter(done, all int, things string) error {
	return interruption{fmt.Sprintf("interrupted after %d of %d %s", done, all, things)}
}

func exitCode(err error) int {
	if _, ok := errors.AsType[interruption](err); ok {
		return exitInterrupted
	}
	if _, ok := errors.AsType[failure](err); ok {
		return exitFailure
	}
	return exitUsage
}
