package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
)

// statusAgain is how often --watch asks.
const statusAgain = time.Second

// statusCommand shows what an agent knows of its group.
type statusCommand struct {
	agentFlags
	watch, all, fleet bool
}

// statusJSON is a status as --json writes it: what the agent serves.
type statusJSON struct {
	Status  api.Status  `json:"status"`
	Members api.Members `json:"members"`
}

func newStatus() *cobra.Command {
	var s statusCommand
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the members of a group, their states and the last changes, on one screen",
		Long: `Ask the agent of this host what it knows of its group: the quorum, what the arbiter has
answered last, the members as a ring, and the last views with their causes.

  ●  a member             ◎  this agent
  ?  a suspected member   ~  one that lags behind, or does not answer for a second
  ○  a hole: its member has left or died

Members that need attention come first; in a large group, the others are counted (--all
lists them). lag is how many segments of this agent's broadcasts a member may not have yet,
from 64 on: fewer are under way in any group. domain is the failure domain.

With --fleet, it shows the zones instead: their members, their gateways, of which the leader
sends the zone's messages to the others, and for each pair of zones how many messages the
second one has not acknowledged yet, and when the leader of the first has heard of it.

pleach members asks a member for its view without an agent.`,
		Example: `  pleach status
  pleach status --watch
  pleach status --fleet
  pleach status --json | jq -r .status.quorum.arbiter.state
  pleach status --json | jq '.members.members[] | select(.state == "suspected") | .id'`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	s.addFlags(cmd)
	cmd.Flags().BoolVar(&s.watch, "watch", false, "show it again every second, until Ctrl-C")
	cmd.Flags().BoolVar(&s.fleet, "fleet", false, "show the zones of the fleet")
	cmd.Flags().BoolVar(&s.all, "all", false, "list every member, however many there are")
	return cmd
}

func (s *statusCommand) run(cmd *cobra.Command) error {
	agent, err := s.client()
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if s.watch && !s.json && cli.IsTerminal(out) {
		screen := newWatchScreen(out)
		defer screen.close()
		out = screen
	}
	for {
		write, err := s.askInTime(ctx, agent)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return refused(err)
		}
		if err := write(out); err != nil {
			return cli.Failure(err)
		}
		if !s.watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(statusAgain):
		}
	}
}

// statusTimeout is how long an agent may take. One that hangs does not answer at all.
const statusTimeout = 10 * time.Second

// askInTime asks the agent, and says what to do with one that hangs.
func (s *statusCommand) askInTime(ctx context.Context, agent *client.Client) (func(io.Writer) error, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	write, err := s.ask(ctx, agent)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the agent has not answered for %v: its process hangs or is stopped. Look at it (systemctl status pleach-agent), and restart it", statusTimeout)
	}
	return write, err
}

// ask asks the agent, and returns what writes the answer.
func (s *statusCommand) ask(ctx context.Context, agent *client.Client) (func(io.Writer) error, error) {
	if s.fleet {
		f, err := agent.Fleet(ctx)
		return func(out io.Writer) error { return s.write(out, &f, func(bool) string { return fleetText(&f) }) }, err
	}
	var j statusJSON
	var err error
	j.Status, err = agent.Status(ctx)
	if err == nil {
		j.Members, err = agent.Members(ctx)
	}
	return func(out io.Writer) error {
		return s.write(out, &j, func(color bool) string {
			screen := statusScreen{statusJSON: j, all: s.all, color: color}
			return screen.text()
		})
	}, err
}

// write writes an answer as JSON or for people, in color or not.
func (s *statusCommand) write(out io.Writer, object any, screen func(color bool) string) error {
	if s.json {
		return json.NewEncoder(out).Encode(object)
	}
	terminal, watching := out.(*watchScreen)
	text := screen(watching && cli.WantsColor(terminal.out) || cli.WantsColor(out))
	if s.watch && !watching {
		text += "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
