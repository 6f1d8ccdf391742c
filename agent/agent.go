// Package agent is a member of a group for the programs of its host, in any language. They
// talk to it by a local HTTP API (package api). It joins its group, comes back to it, runs
// the commands of its own file, and leaves.
package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/agent/ui"
)

// leaveTimeout is how long the others may take to let the agent go, and rejoinTimeout to
// take it back before it looks for its group again, the pause of [pleach.Group.Rejoin] included.
const (
	leaveTimeout  = 5 * time.Second
	rejoinTimeout = 40 * time.Second
	metaTimeout   = time.Minute
)

// Options are the parameters of an agent that are not settings.
type Options struct {
	// Load reads the settings, and reads them again when Reload says so.
	Load   func() (*config.Config, error)
	Reload <-chan struct{}
	// Version is that of the program, for the other members to see.
	Version string
	Logger  *slog.Logger
	// Started is called when the agent serves its API, and Joined when it is a member. Both
	// may be nil.
	Started func(c *config.Config)
	Joined  func(g *pleach.Group)
}

// load reads the settings, with the data directory that the agent uses.
func (o *Options) load() (*config.Config, error) {
	c, err := o.Load()
	if err != nil {
		return nil, err
	}
	return c.WithPrivateDataDir()
}

// Agent is a member of a group for other programs.
type Agent struct {
	options  Options
	log      *slog.Logger
	config   atomic.Pointer[config.Config]
	store    *store
	events   *retention.Log
	watched  watch
	group    atomic.Pointer[pleach.Group] // nil: it is not a member
	sendLock chan struct{}                // held by the one broadcast that is under way
	began    time.Time

	files    atomic.Pointer[transfer.Service] // nil: it is not a member
	services atomic.Pointer[services]         // nil: it is not a member, nor about to be
	shards   shards
	losses   losses
	fleet    zones
	receiver receiver
	handlers handlers
	queries  queries
	warnings warnings

	unprotected sync.Once // the warning that the group is open
	// audit adds a line to the audit log.
	audit func(who, from, action, what string, err error)
}

// Run runs an agent until ctx ends, and then leaves the group. It returns an error if it
// cannot become a member, or another process has taken its place.
func Run(ctx context.Context, o Options) error {
	c, err := o.load()
	if err != nil {
		return err
	}
	a := &Agent{
		options: o, log: o.Logger, sendLock: make(chan struct{}, 1), began: time.Now(),
		fleet: zones{sendLock: make(chan struct{}, 1)}, shards: shards{putting: make(chan struct{}, 1)},
		events: retention.New(newEpoch(), retention.Limits{Messages: retainedEvents, Bytes: retainedEventBytes}),
	}
	a.config.Store(c)
	if err := checkUnused(c.Socket); err != nil {
		return err // before the directory, which that agent has, too
	}
	a.store, err = newStore(c.DataDir, retention.Limits{Messages: c.RetainMessages, Bytes: c.RetainBytes}, a.log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.store.done.Go(func() { a.store.run(ctx) })
	defer a.store.stop()
	server := api.NewServer(a, a.log)
	server.HandlePublic("GET "+ui.Path, ui.Handler())
	a.audit = server.Audit
	listeners, err := a.listen(c, server)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	for _, serve := range listeners {
		running.Go(func() {
			if err := serve(ctx); err != nil {
				cancel(fmt.Errorf("the API has ended: %w", err))
			}
		})
	}
	if o.Started != nil {
		o.Started(c)
	}
	a.handlers.life, a.handlers.kill = context.WithCancel(context.WithoutCancel(ctx))
	a.handlers.positions.open(c.DataDir, a.log)
	a.handlers.start(ctx, a, c.Handlers)
	defer a.handlers.stop()
	running.Go(func() { a.reload(ctx, server) })
	running.Go(func() { a.watchHost(ctx) })
	err = a.live(ctx)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// operated adds what an operator has asked of the group, and not of the API, to the audit log.
func (a *Agent) operated(o pleach.OperatorAction) {
	a.audit(cmp.Or(strings.Join(o.Certificate, ", "), "operator"), o.From, o.Action, o.What, o.Err)
}

// newEpoch is the beginning of the IDs of one start of the agent.
func newEpoch() string { return strings.ToLower(rand.Text()[:8]) }

// live is a member of the group until ctx ends.
func (a *Agent) live(ctx context.Context) error {
	g, err := a.join(ctx)
	for ; err == nil; g, err = a.comeBack(ctx, g) {
		a.enter(g)
		membership, end := context.WithCancel(ctx)
		var parts sync.WaitGroup
		parts.Go(func() { a.followSeeds(membership, g) })
		parts.Go(func() { a.keepFleet(membership, g) })
		parts.Go(func() { a.keepShards(membership, g) })
		a.follow(ctx, g)
		if ctx.Err() != nil {
			a.handOver()
		}
		end()
		parts.Wait()
		a.group.Store(nil)
		a.endFiles()
		a.endServices()
		if ctx.Err() != nil {
			return a.leave(g)
		}
		a.log.Warn("no longer a member", "cause", g.Err())
	}
	if ctx.Err() != nil {
		return nil // it was ended before it was a member
	}
	return err
}

// enter makes a group the agent's.
func (a *Agent) enter(g *pleach.Group) {
	a.group.Store(g)
	a.warnings.join.forget()
	a.takeFiles(g)
	a.registerQueries(g)
	a.log.Info("member", "group", a.config.Load().Group, "rank", g.Rank(), "id", g.Self().ID, "address", g.Self().Address,
		"view", g.View().Number)
	if a.options.Joined != nil {
		a.options.Joined(g)
	}
}

func (a *Agent) leave(g *pleach.Group) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	err := g.Leave(ctx)
	if closeErr := g.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%w: the others will find that this member is gone", err)
	}
	a.log.Info("left")
	return nil
}

// comeBack makes the agent a member again after the group has removed it.
func (a *Agent) comeBack(ctx context.Context, old *pleach.Group) (*pleach.Group, error) {
	if errors.Is(old.Err(), pleach.ErrReplaced) {
		return nil, errors.Join(old.Err(), old.Close())
	}
	_ = old.Abort() // no message of it arrives from here on
	timed, cancel := context.WithTimeout(ctx, rejoinTimeout)
	defer cancel()
	a.receiver.expect()
	err := a.expectServices(nil)
	if err == nil {
		err = old.Rejoin(timed)
	}
	if err == nil {
		if err := a.startServices(old); err != nil {
			return nil, a.withdraw(old, err)
		}
		a.receiver.set(old)
		return old, nil
	}
	_ = a.startServices(nil)
	a.receiver.set(nil)
	if errors.Is(err, pleach.ErrReplaced) {
		return nil, err
	}
	a.log.Warn("not a member again yet", "cause", err)
	return a.join(ctx)
}

// current returns the group.
func (a *Agent) current() (*pleach.Group, error) {
	if g := a.group.Load(); g != nil {
		return g, nil
	}
	return nil, a.notMember()
}
