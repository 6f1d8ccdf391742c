package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/agent/config"
)

// agentFlags are the flags of the commands over an agent: where it is, and how to print.
type agentFlags struct {
	socket, api, tokenFile string
	timeout                time.Duration
	json                   bool
}

func (a *agentFlags) addFlags(cmd *cobra.Command) {
	a.addAddress(cmd)
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, an object on each line")
}

func (a *agentFlags) addAddress(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.socket, "socket", "", "`path` of the agent's Unix socket (default $PLEACH_SOCKET, or "+
		config.DefaultSocket()+")")
	f.StringVar(&a.api, "api", "", "loopback `host:port` of the agent instead (default $PLEACH_API)")
	f.StringVar(&a.tokenFile, "token-file", "", "`file` with the token for --api (default $PLEACH_TOKEN_FILE)")
	cmd.MarkFlagsMutuallyExclusive("socket", "api")
}

func (a *agentFlags) addTimeout(cmd *cobra.Command, standard time.Duration) {
	cmd.Flags().DurationVar(&a.timeout, "timeout", standard, "how long it may take")
}

// client returns that of the agent.
func (a *agentFlags) client() (*client.Client, error) {
	address := a.api
	if a.socket == "" {
		address = cmp.Or(address, os.Getenv("PLEACH_API"))
	}
	if address == "" {
		socket := cmp.Or(a.socket, os.Getenv("PLEACH_SOCKET"), config.DefaultSocket())
		return client.Socket(socket), config.CheckSocket(socket)
	}
	file := cmp.Or(a.tokenFile, os.Getenv("PLEACH_TOKEN_FILE"))
	if file == "" {
		return nil, errors.New("--api needs --token-file, the one of the agent")
	}
	token, err := config.ReadToken(file)
	if err != nil {
		return nil, err
	}
	return client.TCP(address, token), nil
}

// agentStart bounds how long a command waits for an agent that is starting.
const agentStart = 10 * time.Second

// started returns the client of the agent, and blocks while the agent is starting: until it is a member
// of its group or, if member is false, until it accepts connections. It waits for at most agentStart, and
// at most for the limit if that is positive.
func (a *agentFlags) started(cmd *cobra.Command, member bool, limit time.Duration) (*client.Client, error) {
	agent, err := a.client()
	if err != nil {
		return nil, err
	}
	bound := agentStart
	if limit > 0 {
		bound = min(bound, limit)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), bound)
	defer cancel()
	agent.AwaitStart(ctx, member, func() {
		if !a.json {
			fmt.Fprintf(cmd.ErrOrStderr(), "pleach: waiting up to %v for the agent to start and join its group\n", bound)
		}
	})
	return agent, nil
}

// inputFlags are where the bytes of a message or a query come from: an argument, a file, or
// the standard input.
type inputFlags struct{ file string }

func (i *inputFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&i.file, "file", "", "`file` with the bytes, instead of an argument")
}

// check refuses two inputs, and an argument that is the name of a file: its content may be
// meant.
func (i *inputFlags) check(args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case i.file != "":
		return fmt.Errorf("%q and --file: write one of them", args[0])
	case args[0] == "-":
		return nil
	}
	if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
		return fmt.Errorf("there is a file %s: write --file %[1]s for its content, or echo %[1]s | … for the text", args[0])
	}
	return nil
}

// read returns the bytes: those of the file, the argument, or the standard input if there is
// none, or -.
func (i *inputFlags) read(cmd *cobra.Command, args []string) ([]byte, error) {
	in := cmd.InOrStdin()
	switch {
	case i.file != "":
		f, err := os.Open(i.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	case len(args) > 0 && args[0] != "-":
		return []byte(args[0]), nil
	}
	b, err := io.ReadAll(io.LimitReader(in, api.MaxBody+1))
	if err == nil && len(b) > api.MaxBody {
		err = errors.New("the message is longer than 16 MiB")
	}
	return b, err
}

// refused says why an agent, or its group, does not do what was asked.
func refused(err error) error { return cli.Failure(errors.New(cli.ShellText(err))) }
