package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
)

// lookTimeout is how long a member may take to answer, and lookAgain how often
// --watch asks.
const (
	lookTimeout = 3 * time.Second
	lookAgain   = 500 * time.Millisecond
)

// membersCommand looks at a running group from outside.
type membersCommand struct {
	groupFlags
	json, watch bool
}

func newMembers() *cobra.Command {
	var m membersCommand
	cmd := &cobra.Command{
		Use:   "members [ADDRESS]",
		Short: "Show the members of a running group",
		Long: `Ask the member at an address for its view of the group, without becoming a member: the
number of the view, and every member's rank, identity, address and failure domain, and
since which view its process is a member (its incarnation). A hole (○) is a rank whose
member has died or left; a member that joins may fill it. If the group has lost its
quorum, that is said, and the members that the one asked cannot reach are marked (✗).
See pleach force-view for the last resort.

Without an address, ask the agent of this host: its file (--config) has the group's name,
TLS and secret.

With --watch, print every change of the view until Ctrl-C. If the member that was
asked is gone, another member of the last view is asked.`,
		Example: `  pleach members 127.0.0.1:7000
  pleach members 10.0.0.5:7000 --group orders --watch
  pleach members 127.0.0.1:7000 --json | jq '.members[].address'
  pleach members db1:7000 --tls-ca ca.pem --tls-cert me.pem --tls-key me.key`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("write the address of one member, as in pleach members 127.0.0.1:7000")
			}
			return errors.Join(mapped(args, checkAddress)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses, err := m.addresses(cmd.Context(), args)
			if err != nil {
				return err
			}
			return m.run(cmd, addresses[0])
		},
	}
	m.addFlags(cmd)
	cmd.Flags().BoolVar(&m.json, "json", false, "print a view as a JSON object, on one line")
	cmd.Flags().BoolVar(&m.watch, "watch", false, "keep running, and print what changes")
	return cmd
}

func (m *membersCommand) run(cmd *cobra.Command, address string) error {
	c, err := m.config()
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	view, err := look(ctx, c, []string{address})
	if err != nil {
		return err
	}
	if m.json {
		err = json.NewEncoder(out).Encode(newViewJSON(view))
	} else {
		_, err = io.WriteString(out, viewTable(view))
	}
	if err != nil {
		return cli.Failure(err)
	}
	if m.watch {
		return m.follow(ctx, c, address, view, out)
	}
	return nil
}

// follow shows what changes.
func (m *membersCommand) follow(ctx context.Context, c pleach.Config, address string, last pleach.View,
	out io.Writer,
) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookAgain):
		}
		addresses := []string{address}
		for _, member := range last.Members() {
			if member.Address != address {
				addresses = append(addresses, member.Address)
			}
		}
		view, err := look(ctx, c, addresses)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case view.Number < last.Number || view.Number == last.Number && quorumText(view.Err) == quorumText(last.Err):
			continue // nothing is new, or it is behind
		}
		if m.json {
			err = json.NewEncoder(out).Encode(newViewJSON(view))
		} else {
			_, err = fmt.Fprintln(out, viewChange(last, view))
		}
		if err != nil {
			return cli.Failure(err)
		}
		last = view
	}
}

// look asks one member after the other.
func look(ctx context.Context, c pleach.Config, addresses []string) (pleach.View, error) {
	var last error
	for _, address := range addresses {
		timed, cancel := context.WithTimeout(ctx, lookTimeout)
		inspection, err := pleach.Inspect(timed, c, address)
		cancel()
		if err == nil {
			return inspection.View, nil
		}
		last = cmp.Or(last, err)
	}
	return pleach.View{}, noAnswer(last, c.Group)
}

// noAnswer says what to look at when no member has answered in time.
func noAnswer(err error, group string) error {
	text := cli.ShellText(err)
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
	case group == "":
		text += "\nIs a member there? If its group has a name, write --group NAME."
	default:
		text += fmt.Sprintf("\nIs a member there, and is its group called %q (--group)?", group)
	}
	return cli.Failure(errors.New(text))
}
