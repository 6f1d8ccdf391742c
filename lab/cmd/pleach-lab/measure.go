package main

import (
	"context"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
)

// measured is what a benchmark has to show: how much of what was asked for is done, as in 3
// of 5 trials, and how to write it. If write is nil, there is nothing yet.
type measured struct {
	done, of int
	what     string
	write    func(io.Writer) error
}

// measure runs a benchmark of so many steps, with progress, and writes what it has
// measured. What was measured before Ctrl-C or a failure is as good as the rest.
func measure(cmd *cobra.Command, steps int, run func(ctx context.Context, bar *progress) (measured, error)) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM) // timeout(1) sends it
	defer stop()
	bar := newProgress(cmd.ErrOrStderr(), steps)
	m, err := run(ctx, bar)
	bar.stop()
	if m.write != nil {
		if err := m.write(cmd.OutOrStdout()); err != nil {
			return cli.Failure(err)
		}
	}
	if ctx.Err() != nil {
		return cli.InterruptedAfter(m.done, m.of, m.what)
	}
	return cli.Failure(err)
}
