package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/discover"
	"github.com/pleach-go/pleach/agent/transfer"
)

// discoverInterval is how often an agent that is not a member yet, or has no quorum, resolves
// its seeds again.
const discoverInterval = 3 * time.Second

// errSeedsChanged ends an attempt to join.
var errSeedsChanged = errors.New("the seeds have changed")

// errNoSeeds says what to write.
var errNoSeeds = errors.New(
	"the agent has no seeds: name them (host:port, dns:NAME:PORT, kubernetes:SERVICE:PORT or exec:COMMAND), or write expect: 1 for an agent that begins a group alone")

// join makes the agent a member. It tries as long as that may help.
func (a *Agent) join(ctx context.Context) (*pleach.Group, error) {
	c := a.config.Load()
	if len(c.Seeds) == 0 && c.Expect == 0 {
		return nil, errNoSeeds
	}
	for {
		seeds := a.resolve(ctx, c)
		if !c.Protected() && leavesHost(c.Listen, seeds) {
			a.unprotected.Do(func() {
				a.log.Warn("THE GROUP IS OPEN: every process that reaches this address and knows the group's name can join, read and send. Set group, and secret-file or tls-ca, tls-cert and tls-key", "listen", c.Listen, "group", c.Group)
			})
		}
		g, err := a.tryJoin(ctx, c, seeds)
		var failed *pleach.JoinError
		switch {
		case err == nil:
			return g, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errSeedsChanged):
			a.log.Info("seeds have changed", "before", seeds)
		case c.TLSCert != "" && expired(err) && pause(ctx, discoverInterval):
			a.log.Warn("a certificate has expired: the agent continues when its file is replaced", "cause", err)
		case !errors.As(err, &failed) || failed.Permanent:
			return nil, err
		}
	}
}

// expired reports whether a connection failed because a certificate of either side has
// expired. Package crypto/tls has no type for what the other side says.
func expired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired ||
		strings.Contains(err.Error(), "tls: expired certificate")
}

// isLoopback reports whether only processes of this host reach a host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// leavesHost reports whether other hosts can reach an agent with this listen address. Without
// one, it listens on the interface that reaches its seeds, or on loopback if there are none.
func leavesHost(listen string, seeds []string) bool {
	if listen != "" {
		seeds = []string{listen}
	}
	return slices.ContainsFunc(seeds, func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		return err == nil && !isLoopback(host)
	})
}

// resolve returns the addresses of the seeds, as soon as there are any. An agent that may
// begin a group needs none.
func (a *Agent) resolve(ctx context.Context, c *config.Config) []string {
	for {
		seeds, err := discover.Resolve(ctx, net.DefaultResolver, c.Seeds)
		if err != nil && ctx.Err() == nil {
			a.log.Warn("seeds", "cause", err)
		}
		if len(seeds) > 0 || c.Expect > 0 || !pause(ctx, discoverInterval) {
			return seeds
		}
	}
}

// tryJoin joins until the seeds stand for other addresses.
func (a *Agent) tryJoin(ctx context.Context, c *config.Config, seeds []string) (*pleach.Group, error) {
	group, err := c.GroupConfig(a.options.Version)
	if err != nil {
		return nil, err
	}
	if err := a.expectServices(&group); err != nil {
		return nil, err
	}
	a.receiver.expect()
	group.OnMessage, group.OnView = a.receive, a.receiveView
	group.Logger = slog.New(joinLog{a.log.Handler(), &a.warnings.join})
	group.Security.OnOperator = a.operated
	a.warnings.followCertificate(&group)
	group.Limits.SegmentSize = transfer.SegmentSize
	a.store.follow(&group)
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if discover.Dynamic(c.Seeds) {
		go a.watchSeeds(attempt, cancel, c, seeds)
	}
	g, err := pleach.Join(attempt, group, seeds...)
	if servicesErr := a.startServices(g); servicesErr != nil {
		return nil, a.withdraw(g, servicesErr)
	}
	a.receiver.set(g)
	if err != nil && errors.Is(context.Cause(attempt), errSeedsChanged) {
		return nil, errSeedsChanged
	}
	return g, err
}

// watchSeeds ends an attempt when the seeds have changed.
func (a *Agent) watchSeeds(ctx context.Context, cancel context.CancelCauseFunc, c *config.Config, seeds []string) {
	for pause(ctx, discoverInterval) {
		now, err := discover.Resolve(ctx, net.DefaultResolver, c.Seeds)
		if err == nil && !slices.Equal(now, seeds) {
			cancel(errSeedsChanged)
			return
		}
	}
}

// followSeeds resolves the seeds again while the group has no quorum: it may have continued
// without this agent, at other addresses.
func (a *Agent) followSeeds(ctx context.Context, g *pleach.Group) {
	c := a.config.Load()
	for discover.Dynamic(c.Seeds) && pause(ctx, discoverInterval) {
		if g.View().Err == nil {
			continue
		}
		seeds, err := discover.Resolve(ctx, net.DefaultResolver, c.Seeds)
		if err != nil && ctx.Err() == nil {
			a.log.Warn("seeds", "cause", err)
		}
		if len(seeds) > 0 {
			g.SetSeeds(seeds...)
		}
	}
}

// pause waits, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
