package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
)

// evictTimeout is how long the members may take to agree on the view without the member.
const evictTimeout = 30 * time.Second

// evictCommand removes a live member.
type evictCommand struct{ groupFlags }

func newEvict() *cobra.Command {
	var e evictCommand
	cmd := &cobra.Command{
		Use:   "evict ID [ADDRESS]",
		Short: "Remove a live member from a group",
		Long: `Remove the member with an ID from a group, even if it is alive. The other members
decide it, so it is refused if they are no quorum without that member.

The process of the member is not stopped. Its group ends with an error that names the
cause, and an agent, or a program with Config.Recovery.Rejoin, joins again at once, as a new
member. To keep it out, write its ID or the serial number of its certificate into the
deny list of all members (deny-file, Config.Security.DenyFile): then they evict it themselves.

The address is that of any member but the one to evict. Without an address, it is the agent
of this host, whose file (--config) has the group's name, TLS and secret.`,
		Example: `  pleach evict web-2 db1:7000
  pleach evict web-2 --config /etc/pleach/agent.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("write the ID of the member, as in pleach evict web-2 127.0.0.1:7000")
			}
			return errors.Join(mapped(args[1:], checkAddress)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses, err := e.addresses(cmd.Context(), args[1:])
			if err != nil {
				return err
			}
			return e.run(cmd, args[0], addresses[0])
		},
	}
	e.addFlags(cmd)
	return cmd
}

func (e *evictCommand) run(cmd *cobra.Command, id, address string) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), evictTimeout)
	defer cancel()
	view, err := pleach.Evict(ctx, c, address, id)
	if err != nil {
		return cli.Failure(errors.New(cli.ShellText(err)))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "evicted %s\n%s\n", cli.Printable(id), viewTitle(view))
	return cli.Failure(err)
}
