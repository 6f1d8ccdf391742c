package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
)

// healthCommand asks an agent as a supervisor does. An image from scratch has no curl.
type healthCommand struct {
	agentFlags
	ready bool
}

func newHealth() *cobra.Command {
	var h healthCommand
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Tell by the exit code whether the agent of this host serves requests",
		Long: `Ask the agent of this host for /healthz, or for /readyz with --ready. The exit code is 0
if all is well, and 1 otherwise. Supervisors run this command as their probe.`,
		Example: `  pleach health
  pleach health --ready && pleach query ping`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return h.run(cmd) },
	}
	h.addAddress(cmd)
	h.addTimeout(cmd, 5*time.Second)
	cmd.Flags().BoolVar(&h.ready, "ready", false, "ask whether it is a member of a group with a quorum")
	return cmd
}

func (h *healthCommand) run(cmd *cobra.Command) error {
	agent, err := h.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), h.timeout)
	defer cancel()
	probe := agent.Healthy
	if h.ready {
		probe = agent.Ready
	}
	return cli.Failure(probe(ctx))
}
