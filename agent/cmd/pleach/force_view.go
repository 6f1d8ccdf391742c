package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
)

// forceTimeout is how long the members may take to agree on the forced view.
const forceTimeout = 30 * time.Second

// forceViewCommand lets the survivors of a group without quorum continue.
type forceViewCommand struct {
	groupFlags
	members []string
	yes     bool
}

func newForceView() *cobra.Command {
	var f forceViewCommand
	cmd := &cobra.Command{
		Use:   "force-view [ADDRESS]",
		Short: "Let the survivors of a group that has lost its quorum continue",
		Long: `Let some members of a group that has lost its quorum continue without the others, which
leave the view. It is a last resort, for when more members are lost for good than a
quorum can do without.

Be sure that the members that do not continue are dead, and not only cut off. If they
live, there may be two groups of the same name afterwards, both of which continue: what
one of them does, the other does not see. A member that was cut off joins again only
when it reaches the others, and then loses what it has done.

The member at the address has to be one that continues. Without --members, all that it
reaches continue. Without an address, it is the agent of this host, whose file (--config)
has the group's name, TLS and secret. Without --yes, the command only says what it would do. It is refused as
long as the group has its quorum.`,
		Example: `  pleach members db1:7000
  pleach force-view --config /etc/pleach/agent.yaml
  pleach force-view db1:7000
  pleach force-view db1:7000 --members db1,db2 --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("write the address of a member that continues, as in pleach force-view 127.0.0.1:7000")
			}
			return errors.Join(mapped(args, checkAddress)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses, err := f.addresses(cmd.Context(), args)
			if err != nil {
				return err
			}
			return f.run(cmd, addresses[0])
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringSliceVar(&f.members, "members", nil,
		"`IDs` of the members that continue (default all that are reachable)")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do it: the others are dead")
	return cmd
}

func (f *forceViewCommand) run(cmd *cobra.Command, address string) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	view, err := look(cmd.Context(), c, []string{address})
	if err != nil && !f.yes { // a restarted process is not a member yet, but can be forced
		return err
	}
	lost, ok := errors.AsType[*pleach.QuorumError](view.Err)
	if err == nil && !ok {
		return cli.Failure(fmt.Errorf("view %d has its quorum: nothing needs to be forced", view.Number))
	}
	if !f.yes {
		return f.explain(out, view, lost)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), forceTimeout)
	defer cancel()
	forced, err := pleach.ForceView(ctx, c, address, f.members...)
	if err != nil {
		return cli.Failure(errors.New(cli.ShellText(err)))
	}
	if _, err := fmt.Fprintln(out, viewChange(view, forced)); err != nil {
		return cli.Failure(err)
	}
	return nil
}

// explain says what the command would do.
func (f *forceViewCommand) explain(out io.Writer, v pleach.View, lost *pleach.QuorumError) error {
	var stay, leave []string
	for _, m := range v.Members() {
		if slices.Contains(f.members, m.ID) || len(f.members) == 0 && !slices.Contains(lost.Unreachable, m.Rank) {
			stay = append(stay, cli.Printable(m.ID))
		} else {
			leave = append(leave, cli.Printable(m.ID))
		}
	}
	_, err := fmt.Fprintf(out, "%s\nwould continue:  %s\nwould leave:     %s\n", viewTitle(v), strings.Join(stay, ", "),
		strings.Join(leave, ", "))
	if err != nil {
		return cli.Failure(err)
	}
	return cli.Failure(errors.New("nothing was done: if the others are dead, and not only cut off, add --yes"))
}
