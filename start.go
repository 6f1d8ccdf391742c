package pleach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/datadir"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Start makes this process a member of a group whose members all start together:
// under a launcher, or with Config.Addresses. It returns as soon as the other
// members can reach this process; it does not wait for them to start. ctx bounds the
// call, not the membership.
func Start(ctx context.Context, c Config) (*Group, error) {
	return open(ctx, c, modeStart, func(c *Config) (*initialState, error) { return startState(c, ctx) })
}

// open checks a config, finds a member's initial state and assembles the group.
func open(ctx context.Context, c Config, m mode, initial func(*Config) (*initialState, error)) (*Group, error) {
	s, err := prepare(ctx, &c, m, initial)
	if err != nil {
		return nil, err
	}
	g := newGroup(c)
	if err := g.enter(c, s, nil, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("pleach: %s: %w", m, err), s.close())
	}
	if c.Recovery.Rejoin {
		g.driver.Go(g.stay)
	}
	return g, nil
}

// prepare checks a config and finds a member's initial state.
func prepare(ctx context.Context, c *Config, m mode,
	initial func(*Config) (*initialState, error),
) (*initialState, error) {
	if err := cmp.Or(c.check(m), ctx.Err()); err != nil {
		return nil, fmt.Errorf("pleach: %s: %w", m, err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := initial(c)
	if err != nil {
		return nil, fmt.Errorf("pleach: %s: %w", m, err)
	}
	return s, nil
}

// initialState is what a member begins with.
type initialState struct {
	transport transport.Transport
	self      membership.Member
	view      membership.View
	start     []membership.Position           // its position in every stream
	decisions membership.Decisions            // that have led to the view
	listening string                          // the address of its socket
	inherited bool                            // all members have inherited their sockets
	replaces  []string                        // the IDs of a job's processes, one of which it replaces; nil: none
	began     []founding.Candidate            // the group began with these, by agreement; nil: otherwise
	revoked   revoked                         // the members that have shown a certificate that is denied
	elsewhere lifecycle.Elsewhere             // the members that are not where the view has them
	sends     int                             // the longest message that the group sends; 0: unknown
	sendsFor  string                          // the ID of a member that can receive no longer one
	seeds     []string                        // where else processes may look for the group
	current   atomic.Pointer[membership.View] // the group's, once there is one

	candidate *tcp.Candidate        // what it was before, if it has joined
	former    *membership.SavedVote // the view that the process before was no longer in; nil: none
	data      *datadir.Dir          // where it saves its vote; nil: it does not
}

// open locks the directory of this process, if it has one, and returns the restarted voter that it has. A
// directory that cannot be used is a mistake in the settings, which does not pass.
func (s *initialState) open(c *Config) (saved *membership.SavedVote, err error) {
	if c.Recovery.DataDir == "" {
		return nil, nil
	}
	s.data, err = datadir.Open(c.Recovery.DataDir, c.Group)
	if err == nil {
		saved, s.former, s.self.Nonce, err = s.data.Take(s.self.Identity, s.self.Nonce)
	}
	if err != nil {
		return nil, &ConfigError{
			Field: "Recovery.DataDir", Reason: fmt.Sprintf("is %q: %v", c.Recovery.DataDir, err),
			Err: err,
		}
	}
	return saved, nil
}

// close releases what a member that has not begun would have used: the process may try again.
func (s *initialState) close() error {
	err := s.transport.Close()
	s.data.Close()
	return err
}

// startState is the state of a member whose group starts as a whole: every member
// knows the first view.
func startState(c *Config, ctx context.Context) (*initialState, error) {
	if c.Network.Transport != nil && len(c.Addresses) == 0 {
		c.Static = true
		return staticState(c)
	}
	a, err := assignment(c, ctx)
	if err != nil {
		return nil, err
	}
	return stateOf(c, a)
}

// stateOf is the state of a member with an assignment.
func stateOf(c *Config, a bootstrap.Assignment) (*initialState, error) {
	s := &initialState{
		view:      membership.View{Number: 1, Version: wire.Newest(), Slots: a.Size},
		listening: a.Addresses[a.Rank],
	}
	members := make([]membership.Member, len(a.Addresses))
	for r, address := range a.Addresses {
		members[r] = membership.Member{
			Rank: protocol.Rank(r), Identity: address, Address: address, Incarnation: member.FirstIncarnation,
			Version: wire.Newest(),
		}
	}
	s.self, s.view.Members = members[a.Rank], membership.MembersOf(members...)
	s.transport = c.Network.Transport
	if s.transport != nil {
		return s, nil
	}
	if err := checkCertificate(c, s.self.Identity, s.self.Address); err != nil {
		return nil, err
	}
	if a.Launcher != "" && c.Security.TLS == nil && secretOf(c) == nil {
		c.Logger.Warn("the job is open: every process that reaches its addresses can speak as a rank. Set PLEACH_SECRET to 16 random bytes or more, alike in all processes", "launcher", a.Launcher)
	}
	listener, err := a.Listener()
	if err != nil {
		return nil, err
	}
	s.inherited = a.Listening()
	s.transport, err = newTransport(c, s, listener, a.Addresses)
	return s, err
}

// staticState is the state of a member that knows ranks and no addresses.
func staticState(c *Config) (*initialState, error) {
	if c.Rank < 0 || c.Rank >= c.Network.Size {
		return nil, &ConfigError{Field: "Rank", Reason: fmt.Sprintf("is %d: choose one from 0 to Network.Size-1, which is %d",
			c.Rank, c.Network.Size-1)}
	}
	s := &initialState{transport: c.Network.Transport, view: membership.View{
		Number: 1, Version: wire.Newest(),
		Slots: protocol.Rank(c.Network.Size),
	}}
	members := make([]membership.Member, c.Network.Size)
	for r := range members {
		members[r] = membership.Member{Rank: protocol.Rank(r), Incarnation: member.FirstIncarnation, Version: wire.Newest()}
	}
	s.self, s.view.Members = members[c.Rank], membership.MembersOf(members...)
	return s, nil
}

// assignment is this process's rank and the members' addresses.
func assignment(c *Config, ctx context.Context) (bootstrap.Assignment, error) {
	a := bootstrap.Assignment{
		Group: c.Group, Rank: protocol.Rank(c.Rank), Size: protocol.Rank(len(c.Addresses)),
		Addresses: c.Addresses,
	}
	var err error
	if len(c.Addresses) == 0 {
		a, err = bootstrap.Detect(os.Getenv)
		if err != nil {
			return a, fmt.Errorf("%w; without a launcher, set Config.Addresses and Config.Rank", err)
		}
	}
	a.Respawned = a.Respawned || c.Job.Respawned
	c.Group = cmp.Or(c.Group, a.Group)
	if c.Security.TLS == nil && secretOf(c) == nil && c.Network.Transport == nil {
		c.Security.Secret = a.Secret
	}
	a.Secret = secretOf(c)
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Detection.StartTimeout, defaultStartTimeout))
	defer cancel()
	a, err = a.Meet(ctx)
	if err != nil {
		return a, fmt.Errorf("Config.Addresses and Config.Rank, or what the launcher says: %w", err)
	}
	return a, nil
}

// newTransport makes the transport.
func newTransport(c *Config, s *initialState, listener net.Listener, addresses []string) (transport.Transport, error) {
	incarnation := s.self.Incarnation
	if c.Static {
		incarnation = 0 // no view tells starts apart, so the transport's clock does
	}
	s.current.Store(&s.view)
	config := clientOf(c).Config(listener)
	config.Rank, config.Addresses, config.Candidate, config.Open = s.self.Rank, addresses, s.candidate, !c.Static
	config.Incarnation, config.Nonce, config.SharedBytes = incarnation, s.self.Nonce, max(0, c.Limits.SharedBytes)
	s.revoked = make(revoked, maxRevoked)
	config.Verify = func(claim tcp.Claim) error {
		err := verifyClaim(c, s.current.Load(), claim)
		s.revoked.note(claim, err)
		return err
	}
	t, err := tcp.New(config)
	if err != nil {
		if s.candidate != nil {
			_ = s.candidate.Close()
		}
		return nil, errors.Join(fmt.Errorf("transport: %w", err), listener.Close())
	}
	return t, nil
}
