// Package discover turns an agent's seeds into addresses. A seed is host:port, dns:NAME:PORT
// for all addresses of a name, dns:NAME for its SRV records, kubernetes:[NAMESPACE/]SERVICE:PORT
// for the EndpointSlices of a service, or exec:COMMAND for the lines that a command prints.
package discover

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/command"
	"github.com/pleach-go/pleach/contrib/arbiter/kubernetes/account"
)

// Resolver looks names up; [net.Resolver] is one.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

const (
	dnsPrefix        = "dns:"
	kubernetesPrefix = "kubernetes:"
	execPrefix       = "exec:"
)

// timeout bounds how long a name, a service or a command may take, and maxAddresses how many addresses
// a seed may have.
const (
	timeout      = 10 * time.Second
	maxAddresses = 4096
)

// Check says how a seed is written.
func Check(seed string) error {
	switch name, dns := strings.CutPrefix(seed, dnsPrefix); {
	case strings.HasPrefix(seed, execPrefix):
		if command.Shell(seed[len(execPrefix):]).Empty() {
			return fmt.Errorf("%q has no command: write exec:COMMAND", seed)
		}
		return nil
	case strings.HasPrefix(seed, kubernetesPrefix):
		_, err := parseService(seed[len(kubernetesPrefix):])
		return err
	case dns && name != "" && !strings.Contains(name, ":"):
		return nil // SRV records tell the port
	case dns:
		return checkAddress(seed, name, "dns:NAME:PORT, or dns:NAME for SRV records")
	default:
		return checkAddress(seed, seed, "host:port, dns:NAME:PORT, dns:NAME, kubernetes:SERVICE:PORT or exec:COMMAND")
	}
}

func checkAddress(seed, address, form string) error {
	host, port, err := net.SplitHostPort(address)
	if _, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" {
		return fmt.Errorf("%q is not a seed: write %s", seed, form)
	}
	return nil
}

// Dynamic reports whether what seeds stand for can change.
func Dynamic(seeds []string) bool {
	return slices.ContainsFunc(seeds, func(s string) bool {
		return strings.HasPrefix(s, dnsPrefix) || strings.HasPrefix(s, kubernetesPrefix) || strings.HasPrefix(s, execPrefix)
	})
}

// Resolve returns the addresses of all seeds, sorted. It returns those of the seeds that
// can be resolved together with the errors of the others.
func Resolve(ctx context.Context, r Resolver, seeds []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var addresses []string
	var errs []error
	for _, seed := range seeds {
		found, err := resolve(ctx, r, seed)
		if len(found) > maxAddresses {
			found, err = nil, fmt.Errorf("%d addresses are too many: %d at most", len(found), maxAddresses)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("seed %s: %w", seed, err))
		}
		addresses = append(addresses, found...)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), errors.Join(errs...)
}

func resolve(ctx context.Context, r Resolver, seed string) ([]string, error) {
	if line, ok := strings.CutPrefix(seed, execPrefix); ok {
		return execute(ctx, line)
	}
	if name, ok := strings.CutPrefix(seed, kubernetesPrefix); ok {
		return listEndpoints(ctx, account.Config{}, name)
	}
	name, dns := strings.CutPrefix(seed, dnsPrefix)
	switch host, port, err := net.SplitHostPort(name); {
	case !dns:
		return []string{seed}, nil
	case err != nil:
		return lookupSRV(ctx, r, name)
	default:
		hosts, err := r.LookupHost(ctx, host)
		return withPort(hosts, port), err
	}
}

// lookupSRV returns the addresses of SRV records, as a headless service of Kubernetes has
// them.
func lookupSRV(ctx context.Context, r Resolver, name string) (addresses []string, err error) {
	_, records, err := r.LookupSRV(ctx, "", "", name)
	for _, record := range records {
		hosts, hostErr := r.LookupHost(ctx, strings.TrimSuffix(record.Target, "."))
		if hostErr != nil {
			err = errors.Join(err, hostErr)
			continue
		}
		addresses = append(addresses, withPort(hosts, strconv.Itoa(int(record.Port)))...)
	}
	return addresses, err
}

func withPort(hosts []string, port string) (addresses []string) {
	for _, host := range hosts {
		addresses = append(addresses, net.JoinHostPort(host, port))
	}
	return addresses
}

// execute returns the lines of a command's output that are addresses.
func execute(ctx context.Context, line string) (addresses []string, err error) {
	out, err := command.Shell(line).Run(ctx, nil)
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		address := strings.TrimSpace(lines.Text())
		if address == "" || strings.HasPrefix(address, "#") {
			continue
		}
		if addressErr := checkAddress(address, address, "host:port on each line"); addressErr != nil {
			err = errors.Join(err, addressErr)
			continue
		}
		addresses = append(addresses, address)
	}
	return addresses, errors.Join(err, lines.Err())
}
