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

// sendCommand sends a message through an agent.
type sendCommand struct {
	agentFlags
	input         inputFlags
	to            string
	stable, fleet bool
	header        map[string]string
	waves         waveFlags
}

func newSend() *cobra.Command {
	var s sendCommand
	cmd := &cobra.Command{
		Use:   "send TOPIC [MESSAGE|-]",
		Short: "Send a message to all members of a group, through the agent of this host",
		Long: `Broadcast a message to a topic: an argument, a file (--file) or the standard input. The subscribers of every agent get
it (pleach listen), those of this one included, and handlers run.

With --stable, the command returns when every member of the view has the message, and
says so. With --fleet, the message goes to all members of all zones, which the agent's
settings zone and zones name. With --to, the message goes to one member alone, and has no topic.

With --waves, the message is released wave by wave, spread over failure domains: after each wave,
the agents that have it run the handler of the query --gate, and the rollout continues only if all
exit with 0. Otherwise it stops, and the agents that have got the message get --revert. All agents
keep the rollout, so that it ends even if this agent dies: see pleach rollout. The exit code is 1 if not
all members have got the message. Handlers run at their own pace: give them --hold.`,
		Example: `  pleach send cache flush
  date | pleach send clock
  pleach send config --file new.json --stable
  pleach send cache flush --fleet
  pleach send --to db3 - <note.txt
  pleach send deploy v2 --header user=ada --header ticket=OPS-7
  pleach send config --file new.json --revert-file old.json --waves 1,10%,100% --gate check-config --hold 30s
  pleach send clock now --json`,
		Args: func(cmd *cobra.Command, args []string) error { return errors.Join(s.check(args), s.waves.check(cmd)) },
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	s.addFlags(cmd)
	s.input.addFlags(cmd)
	s.addTimeout(cmd, 30*time.Second)
	cmd.Flags().StringVar(&s.to, "to", "", "`member` that gets it alone: its ID or its rank")
	cmd.Flags().BoolVar(&s.stable, "stable", false,
		"wait until every member has it; with --fleet, every member of this zone")
	cmd.Flags().BoolVar(&s.fleet, "fleet", false, "send it to all members of all zones")
	cmd.Flags().StringToStringVar(&s.header, "header", nil, "`key=value` that goes with the message; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("fleet", "to")
	s.waves.addFlags(cmd)
	s.waves.addRevert(cmd)
	for _, other := range []string{"to", "fleet", "stable", "header"} {
		cmd.MarkFlagsMutuallyExclusive("waves", other)
	}
	return cmd
}

func (s *sendCommand) check(args []string) error {
	switch {
	case s.to != "" && s.stable:
		return errors.New("--stable is about all members, and --to about one: choose")
	case s.to != "" && len(args) > 1:
		return errors.New("a message to one member has no topic: write pleach send --to MEMBER [MESSAGE|-]")
	case s.to == "" && (len(args) == 0 || len(args) > 2 || args[0] == ""):
		return errors.New("write a topic and a message, as in pleach send cache flush")
	}
	return s.input.check(s.message(args))
}

// message is what is left of the arguments behind the topic.
func (s *sendCommand) message(args []string) []string {
	if s.to != "" {
		return args
	}
	return args[1:]
}

func (s *sendCommand) run(cmd *cobra.Command, args []string) error {
	agent, err := s.started(cmd, true, s.timeout)
	if err != nil {
		return err
	}
	agent = agent.WithHeader(s.header)
	topic := ""
	if s.to == "" {
		topic = args[0]
	}
	data, err := s.input.read(cmd, s.message(args))
	if err != nil {
		return err
	}
	if s.waves.waves != "" {
		return s.waves.startMessage(cmd, &s.agentFlags, agent, topic, data)
	}
	out := cmd.OutOrStdout()
	if s.to != "" {
		sent, err := agent.Send(cmd.Context(), s.to, data, s.timeout)
		if err != nil {
			return refused(err)
		}
		return s.print(out, sent, fmt.Sprintf("sent to rank %d (%s)", sent.To.Rank, cli.Printable(sent.To.ID)))
	}
	receipt, err := s.broadcast(cmd.Context(), agent, topic, data)
	if err != nil {
		return refused(err)
	}
	return s.print(out, receipt, receiptText(&receipt))
}

func (s *sendCommand) broadcast(ctx context.Context, agent *client.Client, topic string,
	data []byte,
) (api.Receipt, error) {
	if s.fleet {
		return agent.BroadcastFleet(ctx, topic, data, s.stable, s.timeout)
	}
	return agent.Broadcast(ctx, topic, data, s.stable, s.timeout)
}

func receiptText(r *api.Receipt) string {
	if r.Zones > 0 && r.Stable {
		return fmt.Sprintf("all %s of this zone have it, and pass it on to the fleet: %s",
			cli.Count(len(r.Members), "member"), cli.Count(r.Zones, "zone"))
	}
	if r.Zones > 0 {
		return "sent to the fleet: " + cli.Count(r.Zones, "zone")
	}
	if r.Stable && len(r.Joined) > 0 {
		return fmt.Sprintf("%s of view %d have it, and %d have joined since", cli.Count(len(r.Members), "member"), r.View,
			len(r.Joined))
	}
	if r.Stable {
		return fmt.Sprintf("all %s of view %d have it", cli.Count(len(r.Members), "member"), r.View)
	}
	return fmt.Sprintf("sent in view %d", r.View)
}

func (a *agentFlags) print(out io.Writer, object any, text string) error {
	var err error
	if a.json {
		err = json.NewEncoder(out).Encode(object)
	} else {
		_, err = fmt.Fprintln(out, text)
	}
	return cli.Failure(err)
}
