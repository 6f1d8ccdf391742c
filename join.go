package pleach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// Join makes this process a member. Of a group that starts as a whole it returns
// as soon as the process can be reached; it does not wait for others, who may
// start later. With Seeds it returns when this process is in the others' view.
func Join(ctx context.Context, c Config) (*Group, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("pleach: join: %w", err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := c.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("pleach: join: %w", err)
	}
	g, err := newGroup(c, b, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pleach: join: %w", err), b.transport.Close())
	}
	return g, nil
}

// beginning is what a member begins with.
type beginning struct {
	transport transport.Transport
	self      membership.Member
	view      membership.View
	start     []membership.Have // where it begins in every stream
	address   string            // where this process listens
}

// begin finds out who this process is, and makes its transport.
func (c *Config) begin(ctx context.Context) (*beginning, error) {
	switch {
	case len(c.Seeds) > 0 && c.Found:
		return nil, errors.New("both Seeds and Found: join a group, or begin one")
	case c.Fixed && (len(c.Seeds) > 0 || c.Found):
		return nil, errors.New("both Fixed and Seeds or Found: the members of a fixed group are known from the start")
	case c.Found:
		return c.found()
	case len(c.Seeds) > 0:
		return c.ask(ctx)
	case c.Transport != nil && len(c.Addresses) == 0:
		c.Fixed = true
		return &beginning{transport: c.Transport, self: membership.Member{Rank: c.Stream.Rank}}, nil
	}
	place, err := c.place()
	if err != nil {
		return nil, err
	}
	b := wholeGroup(place)
	b.transport = c.Transport
	if b.transport == nil {
		listener, err := place.Listener()
		if err != nil {
			return nil, err
		}
		b.transport, err = c.tcp(b, listener, place.Addresses)
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// place is this process's among those that start as a whole.
func (c *Config) place() (bootstrap.Assignment, error) {
	place := bootstrap.Assignment{Group: c.Group, Rank: protocol.Rank(c.Rank), Size: protocol.Rank(len(c.Addresses)), Addresses: c.Addresses}
	if len(c.Addresses) == 0 {
		var err error
		if place, err = bootstrap.Detect(os.Getenv); err != nil {
			return place, err
		}
	}
	c.Group = cmp.Or(c.Group, place.Group)
	return place, place.Check()
}

// wholeGroup begins with a view that everybody knows.
func wholeGroup(p bootstrap.Assignment) *beginning {
	b := &beginning{view: membership.View{Number: 1, Slots: p.Size}, address: p.Addresses[p.Rank]}
	for r, address := range p.Addresses {
		b.view.Members = append(b.view.Members, membership.Member{
			Rank: protocol.Rank(r), Identity: address, Address: address, Incarnation: firstIncarnation,
		})
	}
	b.self = b.view.Members[p.Rank]
	return b
}

// found begins a group of one.
func (c *Config) found() (*beginning, error) {
	listener, address, err := c.listen("127.0.0.1")
	if err != nil {
		return nil, err
	}
	b := &beginning{address: address, self: c.candidate(address)}
	b.view = membership.View{Number: 1, Slots: 1, Members: []membership.Member{b.self}}
	b.transport, err = c.tcp(b, listener, []string{address})
	return b, err
}

// ask asks to be let into a running group.
func (c *Config) ask(ctx context.Context) (*beginning, error) {
	listener, address, err := c.listen(hostTowards(c.Seeds[0]))
	if err != nil {
		return nil, err
	}
	b := &beginning{address: address, self: c.candidate(address)}
	i, err := knock(ctx, tcp.Config{Group: c.Group, TLS: c.TLS}, c.Seeds, request(knockJoin, &b.self))
	if err == nil && i.rank == protocol.NoRank {
		err = errors.New("a member answers as if it had not been asked to let this process in")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("group %q at %v: %w", c.Group, c.Seeds, err), listener.Close())
	}
	b.self.Rank, b.view, b.start = i.rank, i.view, i.start
	addresses := make([]string, i.view.Slots)
	for _, m := range i.view.Members {
		addresses[m.Rank] = m.Address
	}
	b.transport, err = c.tcp(b, listener, addresses)
	return b, err
}

// candidate is this process as it asks to be let in.
func (c *Config) candidate(address string) membership.Member {
	return membership.Member{
		Identity: cmp.Or(c.Identity, address), Address: address, Domain: c.Domain,
		Incarnation: uint64(time.Now().UnixNano()),
	}
}

// listen opens a socket where others reach this process. host is where that is if
// Address does not say.
func (c *Config) listen(host string) (net.Listener, string, error) {
	address := cmp.Or(c.Address, net.JoinHostPort(host, "0"))
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	host, _, err = net.SplitHostPort(address)
	if err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return l, net.JoinHostPort(host, port), nil
}

// hostTowards is this host's address on the way to another.
func hostTowards(address string) string {
	conn, err := net.Dial("udp", address) // nothing is sent
	if err != nil {
		return "127.0.0.1"
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

// tcp makes the transport.
func (c *Config) tcp(b *beginning, listener net.Listener, addresses []string) (transport.Transport, error) {
	incarnation := b.self.Incarnation
	if incarnation == firstIncarnation {
		incarnation = uint64(time.Now().UnixNano())
	}
	t, err := tcp.New(tcp.Config{
		Group: c.Group, Rank: b.self.Rank, Addresses: addresses, Listener: listener, Open: !c.Fixed,
		Incarnation: incarnation, TLS: c.TLS, Logger: c.Logger,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("transport: %w", err), listener.Close())
	}
	return t, nil
}

// newGroup puts a member together. The carrier, if there is one, is driven with it.
func newGroup(c Config, b *beginning, courier carrier) (_ *Group, err error) {
	g := &Group{
		turn: make(chan struct{}, 1), arrived: make(chan struct{}, 1), written: make(chan struct{}, 1),
		over: ending{done: make(chan struct{})}, guests: guests{waiting: make(map[uint64]func([]byte))},
		address: b.address,
	}
	if !c.Fixed {
		c.Stream.View, c.Stream.Members, c.Stream.Start = b.view.Number, placesOf(&b.view), marksOf(b.start)
	}
	if len(b.view.Members) > 0 {
		c.Stream.Rank, c.Stream.Size, c.Stream.Incarnation = b.self.Rank, b.view.Slots, b.self.Incarnation
	}
	if c.Fixed && c.Stream.Incarnation <= firstIncarnation {
		c.Stream.Incarnation = uint64(time.Now().UnixNano())
	}
	g.config = c
	g.directory, _ = b.transport.(transport.AddressBook)
	g.parts = &parts{installed: g.installed, courier: courier}
	if g.parts.stream, err = stream.New(c.Stream); err != nil {
		return nil, err
	}
	g.member = g.parts.stream
	g.view.Store(firstView(&c, b))
	nodeConfig := node.Config{Transport: b.transport, Protocol: g.parts, AfterStep: g.settled, Logger: c.Logger}
	if c.Handler != nil {
		nodeConfig.AfterUnlock = g.dispatch
	}
	if c.Fixed {
		g.node = node.New(nodeConfig)
		return g, g.node.Start()
	}
	return g, g.beginViews(b, nodeConfig)
}

// firstView is what the member begins with.
func firstView(c *Config, b *beginning) *View {
	if len(b.view.Members) > 0 {
		return viewOf(&b.view)
	}
	v := &View{Number: 1, Slots: int(c.Stream.Size), Members: make([]Member, c.Stream.Size)}
	for r := range v.Members {
		v.Members[r].Rank = r
	}
	return v
}

// beginViews starts a member that agrees on views with others.
func (g *Group) beginViews(b *beginning, c node.Config) (err error) {
	g.parts.views, err = membership.New(membership.Config{Self: b.self, View: b.view, Log: g.parts, NoQuorum: g.config.NoQuorum})
	if err != nil {
		return err
	}
	g.makeDetectors()
	c.Watcher, c.HandleRequest = g.connections, g.knocked
	g.node = node.New(c)
	if err = g.startWatching(&b.view); err == nil {
		err = g.node.Start()
	}
	if err != nil {
		return errors.Join(err, g.detector.Close())
	}
	return g.node.Do(func(now protocol.Time) {
		g.parts.now = now
		g.greet(&b.view)
	})
}
