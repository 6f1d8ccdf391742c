package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/internal/agent/client"
	"github.com/pleach-go/pleach/internal/agent/config"
	"github.com/pleach-go/pleach/internal/cli"
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
	f.StringVar(&a.socket, "socket", "", "`path` of the agent's Unix socket (default $PLEACH_SOCKET, or "+config.DefaultSocket()+")")
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

// readInput reads a message from a file, or from the standard input for -.
func readInput(cmd *cobra.Command, file string) ([]byte, error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, api.MaxBody+1))
	if err == nil && len(b) > api.MaxBody {
		err = errors.New("the message is longer than 16 MiB")
	}
	return b, err
}

// refused says why an agent, or its group, does not do what was asked.
func refused(err error) error { return cli.Failure(errors.New(cli.ShellText(err))) }
