// Package cli is what the commands pleach and pleach-lab have in common: how they
// end, and how they talk to people and shells.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
)

// Root adds commands to the root of all, and those that every program has.
func Root(root *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SilenceErrors = true // Run prints them
	root.SilenceUsage = true  // errors say what to do
	root.AddCommand(commands...)
	root.AddCommand(newVersion(root.Name()), newMan(root.Name()))
	addVersionFlag(root)
	return root
}

// Run executes a command with the arguments of the process, and returns the exit
// code. Errors go to standard error.
func Run(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// The first Ctrl-C asks, and a run that is under way ends; the second kills.
	context.AfterFunc(ctx, stop)

	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[exit](err); ok && e.error == nil {
		return e.code
	}
	prefix := root.Name() + ": " // errors of the library may have it
	fmt.Fprintln(os.Stderr, prefix+strings.TrimPrefix(err.Error(), prefix))
	return ExitCode(err)
}

// Exit codes other than 0. A script can tell a typing error from work that failed.
const (
	ExitFailure     = 1
	ExitUsage       = 2
	ExitInterrupted = 130 // as shells have it: 128 + SIGINT
)

type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Failure marks an error that is not the caller's: the disk is full, a run does not
// end. All others, cobra's included, are about usage. Failure(nil) is nil.
func Failure(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// exit is an error with an exit code of its own.
type exit struct {
	code int
	error
}

func (e exit) Unwrap() error { return e.error }

// Exit gives an error an exit code of its own. A nil error is not printed: the command that this one
// has run has said what there is to say.
func Exit(code int, err error) error { return exit{code, err} }

// Interruption is the end by Ctrl-C or another signal.
type Interruption string

func (i Interruption) Error() string { return string(i) }

// InterruptedAfter says how much of the work was done.
func InterruptedAfter(done, all int, things string) error {
	return Interruption(fmt.Sprintf("interrupted after %d of %d %s", done, all, things))
}

// ExitCode is the code that tells a script what kind of error it was.
func ExitCode(err error) int {
	if _, ok := errors.AsType[Interruption](err); ok {
		return ExitInterrupted
	}
	if e, ok := errors.AsType[exit](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[failure](err); ok {
		return ExitFailure
	}
	return ExitUsage
}
