package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/experiments"
)

// newBenchTask is a process of the jobs that reproduce measures collectives with.
func newBenchTask() *cobra.Command {
	return &cobra.Command{
		Use:    "task PLAN",
		Short:  "One process of a job, started by reproduce",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := experiments.ServeTask(cmd.Context(), args[0], os.Stdin, cmd.OutOrStdout()); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}
