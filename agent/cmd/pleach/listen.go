package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/agent/retention"
)

// listenAgain is how long a listener waits for an agent that is started again.
const listenAgain = time.Second

// listenCommand subscribes to messages of an agent.
type listenCommand struct {
	agentFlags
	exec, after string
	direct      bool
	fleet       bool
	last        bool
	events      bool
	count       int
	out, errOut io.Writer
}

func newListen() *cobra.Command {
	var l listenCommand
	cmd := &cobra.Command{
		Use:   "listen [TOPIC]",
		Short: "Print the messages of a topic, or run a command for each",
		Long: `Subscribe to a topic, or to all messages, through the agent of this host, and print each
message with the ID of its sender, until Ctrl-C. If the agent is started again, continue.

With --exec, run a command for each message, one after the other: the message is its
standard input, and PLEACH_TOPIC, PLEACH_FROM, PLEACH_FROM_ZONE, PLEACH_FROM_RANK,
PLEACH_VIEW and PLEACH_MESSAGE_ID are in its environment, and PLEACH_HEADER_KEY for each key of
the message's header. A command that fails is reported, and the next message is handled.

A message that was sent to the fleet has the zone before the ID of its sender. With --fleet,
only those are printed. With --members, print which members join, leave, fail and change,
with the reason, and when the quorum is lost and regained, instead of messages.

The agent retains the last messages. --after continues after the message of an ID, which
--json prints, or behind none with 0. --last begins with the last message of the topic. What
is no longer retained is counted on the standard error. An agent that was away gets what it
has missed from other agents; with a data-dir, also after a restart.`,
		Example: `  pleach listen cache
  pleach listen deploy --exec /usr/local/bin/deploy
  pleach listen --last config
  pleach listen --json --after 0 | jq .data
  pleach listen --members
  pleach listen clock --count 1`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1 || (l.direct || l.events) && len(args) > 0:
				return errors.New("write one topic, or none for all messages, as in pleach listen cache")
			case l.last && len(args) == 0:
				return errors.New("--last needs a topic, as in pleach listen --last config")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args) },
	}
	l.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&l.exec, "exec", "", "`command` that the shell runs for each message")
	f.StringVar(&l.after, "after", "", "begin after the message with this `ID`, or 0 for the oldest one retained")
	f.BoolVar(&l.last, "last", false, "begin with the last message of the topic that an agent of the group retains")
	cmd.MarkFlagsMutuallyExclusive("last", "after")
	f.BoolVar(&l.direct, "direct", false, "only messages that were sent to this member alone")
	f.BoolVar(&l.fleet, "fleet", false, "only messages that were sent to all zones")
	cmd.MarkFlagsMutuallyExclusive("fleet", "direct")
	f.BoolVar(&l.events, "members", false,
		"members that join, leave, fail and change, and a lost quorum, instead of messages")
	cmd.MarkFlagsMutuallyExclusive("members", "direct", "fleet", "exec")
	f.IntVar(&l.count, "count", 0, "end after this `number` of messages (default never)")
	return cmd
}

// errEnough ends a listener that has got its number of messages.
var errEnough = errors.New("enough")

func (l *listenCommand) run(cmd *cobra.Command, args []string) error {
	agent, err := l.started(cmd, false, 0)
	if err != nil {
		return err
	}
	l.out, l.errOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
	s := client.Subscription{Direct: l.direct, Fleet: l.fleet, Events: l.events, After: l.after, Last: l.last}
	s.Begins = func(id string) { s.After = id }
	if len(args) > 0 {
		s.Topic = &args[0]
	}
	ctx, subscribed := cmd.Context(), false
	for {
		err := agent.Messages(ctx, s, func() { subscribed = true }, func(e client.Event) error {
			if e.ID != "" {
				s.After = e.ID
			}
			return l.event(ctx, &e)
		})
		var answer *client.RefusedError
		switch {
		case errors.Is(err, errEnough), ctx.Err() != nil:
			return nil
		case !subscribed, errors.As(err, &answer), cli.ExitCode(err) == cli.ExitFailure:
			return refused(err)
		}
		select { // the agent has ended; a restarted one continues
		case <-ctx.Done():
			return nil
		case <-time.After(listenAgain):
		}
	}
}

// event handles an event.
func (l *listenCommand) event(ctx context.Context, e *client.Event) error {
	var err error
	switch {
	case l.json && l.exec == "":
		err = json.NewEncoder(l.out).Encode(newListenJSON(e))
	case e.Missed != nil:
		fmt.Fprintf(l.errOut, "pleach: %s\n", missedText(e.Missed))
	case e.Gap != nil:
		fmt.Fprintf(l.errOut, "pleach: %s: %s\n", gapText(e.Gap), cli.Printable(e.Gap.Reason))
	case e.Group != nil:
		_, err = io.WriteString(l.out, eventText(e.Group))
	case l.exec != "":
		l.execute(ctx, e)
	default:
		_, err = fmt.Fprintf(l.out, "[%s] %s\n", zoned(e.Message.Zone, e.Message.From.ID), messageText(e.Message))
	}
	if err != nil {
		return cli.Failure(err)
	}
	if (e.Message != nil || e.Group != nil) && l.count > 0 {
		l.count--
		if l.count == 0 {
			return errEnough
		}
	}
	return nil
}

// eventText is what has happened to a group, a line for each member.
func eventText(e *api.Event) string {
	head := fmt.Sprintf("%s view %d %s", e.Time.Local().Format(time.TimeOnly), e.View, e.Event)
	if len(e.Members) == 0 {
		return strings.TrimSpace(head+" "+cli.Printable(e.Reason)) + "\n"
	}
	var b strings.Builder
	for _, m := range e.Members {
		c := pleach.MemberChange{Rank: m.Rank, ID: m.ID, Cause: pleach.Cause(m.Cause), By: m.By, Detail: m.Detail}
		fmt.Fprintf(&b, "%s %s\n", head, cli.Printable(c.String()))
	}
	return b.String()
}

// messageText is a message on one line.
func messageText(m *api.Message) string {
	b, err := m.Bytes()
	if err != nil {
		return err.Error()
	}
	return cli.Printable(string(bytes.TrimRight(b, "\n")))
}

// gapText says how many messages are missing.
func gapText(g *api.Gap) string {
	if g.Count == 0 {
		return "messages may be missing here"
	}
	return cli.Count(int(g.Count), "message") + " missing here"
}

func missedText(m *retention.Missed) string {
	text := cli.Count(int(m.Count), "message") + " missed"
	if m.AtMost {
		text = "at most " + text
	}
	if m.Restarted {
		text += ", and those before the agent was started again"
	}
	return text
}

// execute runs the command for a message.
func (l *listenCommand) execute(ctx context.Context, e *client.Event) {
	m := e.Message
	data, err := m.Bytes()
	if err == nil {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", l.exec)
		c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(data), l.out, l.errOut
		c.Env = append(os.Environ(), "PLEACH_TOPIC="+m.Topic, "PLEACH_FROM="+m.From.ID, "PLEACH_FROM_ZONE="+m.Zone,
			fmt.Sprint("PLEACH_FROM_RANK=", m.From.Rank),
			fmt.Sprint("PLEACH_VIEW=", m.View), "PLEACH_MESSAGE_ID="+e.ID)
		c.Env = append(c.Env, api.HeaderVariables(m.Headers)...)
		err = c.Run()
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(l.errOut, "pleach: --exec for message %s: %v\n", e.ID, err)
	}
}

// listenJSON is an event as --json writes it: the fields of its kind are there.
type listenJSON struct {
	Event string `json:"event"`
	ID    string `json:"id,omitempty"`
	*api.Message
	*retention.Missed
	Gap    uint64     `json:"missing,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Group  *api.Event `json:"group,omitempty"`
}

func newListenJSON(e *client.Event) listenJSON {
	switch {
	case e.Missed != nil:
		return listenJSON{Event: api.EventMissed, ID: e.ID, Missed: e.Missed}
	case e.Gap != nil:
		return listenJSON{Event: api.EventGap, ID: e.ID, Gap: e.Gap.Count, Reason: e.Gap.Reason}
	}
	if e.Group != nil {
		return listenJSON{Event: e.Group.Event, ID: e.ID, Group: e.Group}
	}
	return listenJSON{Event: api.EventMessage, ID: e.ID, Message: e.Message}
}
