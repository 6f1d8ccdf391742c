package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/internal/driver/admission"
)

// groupFlags are the flags of commands that talk to a running group: its name, and
// the certificates that it trusts or its secret.
type groupFlags struct{ group, ca, cert, key, secret, file string }

// agentFile is where packages have the file of the agent.
const agentFile = "/etc/pleach/agent.yaml"

func (g *groupFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.group, "group", "", "`name` of the group, if it has one")
	f.StringVar(&g.ca, "tls-ca", "", "`file` with the certificate of the group's authority (PEM)")
	f.StringVar(&g.cert, "tls-cert", "", "`file` with this process's certificate (PEM)")
	f.StringVar(&g.key, "tls-key", "", "`file` with the key of that certificate (PEM)")
	f.StringVar(&g.secret, "secret-file", "", "`file` with the group's secret, if it has one (at least 16 bytes)")
	f.StringVar(&g.file, "config", "", "`file` of the agent that has all these (default $PLEACH_CONFIG or "+agentFile+
		" if no address is given)")
	cmd.MarkFlagsRequiredTogether("tls-ca", "tls-cert", "tls-key")
}

// addresses returns the addresses of the arguments. If there are none, it is the agent of this
// host that is meant: its address, and its group, TLS and secret.
func (g *groupFlags) addresses(ctx context.Context, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	g.file = cmp.Or(g.file, os.Getenv("PLEACH_CONFIG"), agentFile)
	c, err := config.Load(g.file, os.Environ(), nil)
	if err != nil {
		return nil, fmt.Errorf(
			"write the address of a member, as in 127.0.0.1:7000, or the file of this host's agent (--config): %w", err)
	}
	members, err := client.Socket(c.Socket).Members(ctx)
	if err == nil {
		for _, m := range members.Members {
			if m.Rank == members.Self {
				return []string{m.Address}, nil
			}
		}
	}
	if address := cmp.Or(c.Advertise, c.Listen); address != "" {
		return []string{address}, nil // it may run without being a member
	}
	return nil, cli.Failure(
		fmt.Errorf("the agent of %s does not tell its address, and the file has no advertise or listen: %w", g.file, err))
}

// takeFile completes the flags with what the file of the agent has.
func (g *groupFlags) takeFile() error {
	if g.file == "" {
		return nil
	}
	c, err := config.Load(g.file, os.Environ(), nil)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	g.group, g.secret = cmp.Or(g.group, c.GroupName()), cmp.Or(g.secret, c.SecretFile)
	if g.ca == "" {
		g.ca, g.cert, g.key = c.TLSCA, c.TLSCert, c.TLSKey
	}
	return nil
}

// config returns what the flags say.
func (g *groupFlags) config() (pleach.Config, error) {
	if err := g.takeFile(); err != nil {
		return pleach.Config{}, err
	}
	c := pleach.Config{Group: g.group}
	if g.secret != "" {
		if _, err := admission.ReadSecrets(g.secret); err != nil {
			return c, fmt.Errorf("--secret-file: %w", err)
		}
		c.Security.SecretFile = g.secret
	}
	if g.ca == "" {
		return c, nil
	}
	var err error
	c.Security.TLS, err = pleach.TLSFiles(g.cert, g.key, g.ca)
	if err != nil {
		return c, fmt.Errorf("--tls-ca, --tls-cert and --tls-key: %w", err)
	}
	return c, nil
}

// arguments are the flags that other processes need to talk to the same group. A
// certificate is of one process, so its files have no names here.
func (g *groupFlags) arguments() (text string) {
	if g.group != "" {
		text += " --group " + g.group
	}
	if g.secret != "" {
		text += " --secret-file " + g.secret
	}
	if g.ca != "" {
		text += " --tls-ca FILE --tls-cert FILE --tls-key FILE"
	}
	return text
}

// checkAddress says how an address is written.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && host == "" {
		err = errors.New("no host")
	}
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil {
		return fmt.Errorf("%q is not an address: write host:port, as in 127.0.0.1:7000", address)
	}
	return nil
}
