package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
)

// kvCommand reads and changes keys through an agent.
type kvCommand struct {
	agentFlags
	input   inputFlags
	version uint64
	count   int
}

func newKV() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kv",
		Short: "Keys and values that all agents of a group keep in memory",
		Long: `Read, change and watch keys and values that all agents of a group keep in memory, and agree
on. They survive the death of any minority of the agents. They are gone when all agents have
ended: keep in etcd, Consul or a database what must outlive them.

In a fleet, keys are those of the zone of the agent: each zone has its own keys.`,
		Example: `  pleach kv put config/color blue
  pleach kv get config/color
  pleach kv watch config/`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKVGet(), newKVPut(), newKVDelete(), newKVList(), newKVWatch())
	return cmd
}

// add makes a command for keys, with at least and at most so many arguments.
func (k *kvCommand) add(cmd *cobra.Command, least, most int,
	run func(cmd *cobra.Command, args []string) error,
) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most || least > 0 && args[0] == "" {
			return fmt.Errorf("write %s", strings.TrimSpace(strings.SplitN(cmd.Example, "\n", 2)[0]))
		}
		return k.input.check(args[min(1, len(args)):])
	}
	cmd.RunE = run
	k.addFlags(cmd)
	return cmd
}

// ask calls the agent, and prints its reply: as JSON, or its text.
func (k *kvCommand) ask(cmd *cobra.Command, call func(agent *client.Client) (reply any, text string, err error)) error {
	agent, err := k.started(cmd, true, k.timeout)
	if err != nil {
		return err
	}
	reply, text, err := call(agent)
	if err != nil {
		return refused(err)
	}
	return k.print(cmd.OutOrStdout(), reply, text)
}

// versionFlag is what a change compares.
func (k *kvCommand) versionFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().Uint64Var(&k.version, "version", 0, usage)
}

// compared is the version that the flag names; nil: any.
func (k *kvCommand) compared(cmd *cobra.Command) *uint64 {
	if !cmd.Flags().Changed("version") {
		return nil
	}
	return &k.version
}

func newKVGet() *cobra.Command {
	var k kvCommand
	cmd := k.add(&cobra.Command{
		Use: "get KEY", Short: "Print the value of a key",
		Long:    "Print the value of a key as it is at this moment, and a line break. The exit code is 1 if there is no such key.",
		Example: "  pleach kv get config/color\n  pleach kv get config/color --json | jq .version",
	}, 1, 1, func(cmd *cobra.Command, args []string) error {
		return k.ask(cmd, func(agent *client.Client) (any, string, error) {
			e, err := agent.Get(cmd.Context(), args[0], k.timeout)
			if err != nil {
				return nil, "", err
			}
			value, err := e.Bytes()
			return e, string(value), err
		})
	})
	k.addTimeout(cmd, 30*time.Second)
	return cmd
}

func newKVPut() *cobra.Command {
	var k kvCommand
	cmd := k.add(&cobra.Command{
		Use: "put KEY [VALUE|-]", Short: "Give a key a value",
		Long: `Give a key a value: an argument, a file (--file) or the standard input. It is printed which
version that has made. With --version, only if the key has that version, or is not there (0):
otherwise the exit code is 1. A key has at most 255 bytes, a value 64 KiB, and all of them
together 16 MiB and 16,384 keys.`,
		Example: "  pleach kv put config/color blue\n  pleach kv put config/limits --file limits.json --version 0",
	}, 1, 2, func(cmd *cobra.Command, args []string) error {
		value, err := k.input.read(cmd, args[1:])
		if err != nil {
			return err
		}
		return k.ask(cmd, func(agent *client.Client) (any, string, error) {
			r, err := agent.Put(cmd.Context(), args[0], value, k.compared(cmd), k.timeout)
			return r, fmt.Sprint("version ", r.Version), err
		})
	})
	k.input.addFlags(cmd)
	k.versionFlag(cmd, "only if the key has this version; 0 if it is not there")
	k.addTimeout(cmd, 30*time.Second)
	return cmd
}

func newKVDelete() *cobra.Command {
	var k kvCommand
	cmd := k.add(&cobra.Command{
		Use: "delete KEY", Short: "Remove a key",
		Long:    "Remove a key. The exit code is 1 if there is no such key, or it does not have --version.",
		Example: "  pleach kv delete config/color",
	}, 1, 1, func(cmd *cobra.Command, args []string) error {
		return k.ask(cmd, func(agent *client.Client) (any, string, error) {
			r, err := agent.Delete(cmd.Context(), args[0], k.compared(cmd), k.timeout)
			return r, "deleted", err
		})
	})
	k.versionFlag(cmd, "only if the key has this version")
	k.addTimeout(cmd, 30*time.Second)
	return cmd
}

func newKVList() *cobra.Command {
	var k kvCommand
	cmd := k.add(&cobra.Command{
		Use: "list [PREFIX]", Short: "Print the keys that begin with a prefix, with their values",
		Long:    "Print the keys that begin with a prefix, or all, with their versions and values, in order of the keys.",
		Example: "  pleach kv list config/",
	}, 0, 1, func(cmd *cobra.Command, args []string) error {
		agent, err := k.started(cmd, true, k.timeout)
		if err != nil {
			return err
		}
		list, err := agent.List(cmd.Context(), prefixOf(args), k.timeout)
		if err != nil {
			return refused(err)
		}
		return k.writeList(cmd.OutOrStdout(), &list)
	})
	k.addTimeout(cmd, 30*time.Second)
	return cmd
}

func prefixOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func (k *kvCommand) writeList(out io.Writer, list *api.Entries) error {
	if k.json {
		return cli.Failure(json.NewEncoder(out).Encode(list))
	}
	var rows [][]string
	for i := range list.Entries {
		e := &list.Entries[i]
		rows = append(rows, []string{cli.Printable(e.Key), fmt.Sprint(e.Version), valueText(e)})
	}
	var b strings.Builder
	writeColumns(&b, rows)
	_, err := io.WriteString(out, b.String())
	return cli.Failure(err)
}

// valueText is a value on one line.
func valueText(e *api.Entry) string {
	b, err := e.Bytes()
	if err != nil {
		return err.Error()
	}
	return cli.Printable(strings.TrimRight(string(b), "\n"))
}

func newKVWatch() *cobra.Command {
	var k kvCommand
	cmd := k.add(&cobra.Command{
		Use: "watch [PREFIX]", Short: "Print keys that change",
		Long: `Print the keys that begin with a prefix, or all, and then each that changes, until Ctrl-C or the
agent ends. What changes often is printed as it is at last, and not each value between.`,
		Example: "  pleach kv watch config/\n  pleach kv watch --json | jq .key",
	}, 0, 1, func(cmd *cobra.Command, args []string) error {
		agent, err := k.started(cmd, true, k.timeout)
		if err != nil {
			return err
		}
		err = agent.Watch(cmd.Context(), prefixOf(args),
			func(c api.Change) error { return k.writeChange(cmd.OutOrStdout(), &c) })
		if cmd.Context().Err() != nil || errors.Is(err, errEnough) {
			return nil
		}
		return refused(err)
	})
	cmd.Flags().IntVar(&k.count, "count", 0, "end after this `number` of changes (default never)")
	return cmd
}

func (k *kvCommand) writeChange(out io.Writer, c *api.Change) error {
	text := "put " + cli.Printable(c.Key) + " " + valueText(&c.Entry)
	if c.Deleted {
		text = "delete " + cli.Printable(c.Key)
	}
	if err := k.print(out, c, text); err != nil {
		return err
	}
	k.count--
	if k.count == 0 {
		return errEnough
	}
	return nil
}
