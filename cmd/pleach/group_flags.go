package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
)

// groupFlags are the flags of commands that talk to a running group: its name, and
// the certificates that it trusts.
type groupFlags struct{ group, ca, cert, key string }

func (g *groupFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.group, "group", "", "`name` of the group, if it has one")
	f.StringVar(&g.ca, "tls-ca", "", "`file` with the certificate of the group's authority (PEM)")
	f.StringVar(&g.cert, "tls-cert", "", "`file` with this process's certificate (PEM)")
	f.StringVar(&g.key, "tls-key", "", "`file` with the key of that certificate (PEM)")
	cmd.MarkFlagsRequiredTogether("tls-ca", "tls-cert", "tls-key")
}

// config returns what the flags say.
func (g *groupFlags) config() (pleach.Config, error) {
	c := pleach.Config{Group: g.group}
	if g.ca == "" {
		return c, nil
	}
	pem, err := os.ReadFile(g.ca)
	if err != nil {
		return c, fmt.Errorf("--tls-ca: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return c, fmt.Errorf("--tls-ca %s: there is no certificate in it: it must be a PEM file", g.ca)
	}
	pair, err := tls.LoadX509KeyPair(g.cert, g.key)
	if err != nil {
		return c, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: authority, ClientCAs: authority}
	return c, nil
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
