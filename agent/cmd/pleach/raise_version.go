package main

import (
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

// raiseTimeout is how long the members may take to agree on the view with the higher version.
const raiseTimeout = 30 * time.Second

// raiseVersionCommand ends a rolling upgrade.
type raiseVersionCommand struct {
	groupFlags
	json bool
}

// raiseJSON is what --json writes. Version is that of the group. Preventing are the members
// that speak no higher one, if they keep it from rising.
type raiseJSON struct {
	View       uint64       `json:"view,omitempty"`
	Version    int          `json:"version"`
	Preventing []memberJSON `json:"preventing"`
}

func newRaiseVersion() *cobra.Command {
	var r raiseVersionCommand
	cmd := &cobra.Command{
		Use:   "raise-version [ADDRESS]",
		Short: "Raise the protocol version of a group after a rolling upgrade",
		Long: `Give a group the highest protocol version that all its members speak. It is the last
step of a rolling upgrade: until then the new processes speak the version of the old
ones, and what needs the new one is refused.

The address is that of any member. If some members do not speak a higher version, the
command names them, and nothing changes. Afterwards a process that does not speak the
new version cannot join, so there is no way back. If the group has the highest version
already, the command says so and succeeds.`,
		Example: `  pleach raise-version db1:7000
  pleach raise-version db1:7000 --group orders --json | jq '.preventing[].identity'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("write the address of a member, as in pleach raise-version 127.0.0.1:7000")
			}
			return errors.Join(mapped(args, checkAddress)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses, err := r.addresses(cmd.Context(), args)
			if err != nil {
				return err
			}
			return r.run(cmd, addresses[0])
		},
	}
	r.addFlags(cmd)
	cmd.Flags().BoolVar(&r.json, "json", false, "print a JSON object")
	return cmd
}

func (r *raiseVersionCommand) run(cmd *cobra.Command, address string) error {
	c, err := r.config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), raiseTimeout)
	defer cancel()
	view, err := pleach.RaiseVersion(ctx, c, address)
	if prevented, ok := errors.AsType[*pleach.RaiseError](err); ok {
		if r.json {
			return errors.Join(r.write(cmd.OutOrStdout(), raiseJSON{
				Version:    prevented.Version,
				Preventing: membersJSON(prevented.Members),
			}), cli.Failure(errors.New(cli.ShellText(err))))
		}
		return cli.Failure(errors.New(cli.ShellText(err)))
	}
	if err != nil {
		return noAnswer(err, c.Group)
	}
	return r.write(cmd.OutOrStdout(), raiseJSON{view.Number, view.Version, []memberJSON{}})
}

func (r *raiseVersionCommand) write(w io.Writer, result raiseJSON) (err error) {
	if r.json {
		err = json.NewEncoder(w).Encode(result)
	} else {
		_, err = fmt.Fprintf(w, "view %d: protocol version %d\n", result.View, result.Version)
	}
	return cli.Failure(err)
}
