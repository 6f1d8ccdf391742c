package pleach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// Create makes this process the first member of a new group. Others join it. ctx
// bounds the call, not the membership.
func Create(ctx context.Context, c Config) (*Group, error) {
	return open(ctx, c, modeCreate, func(c *Config) (*initialState, error) { return c.createState() })
}

// Join makes this process a member of a running group. Seeds are addresses of
// its members, of which one that is alive is enough. Join returns when the
// members have installed a view with this process in it. It tries again until ctx
// ends, which does not bound the membership.
func Join(ctx context.Context, c Config, seeds ...string) (*Group, error) {
	return open(ctx, c, modeJoin, func(c *Config) (*initialState, error) { return c.joinState(ctx, seeds) })
}

// createState is the state of a group of one.
func (c *Config) createState() (*initialState, error) {
	listener, address, err := c.listen("127.0.0.1")
	if err != nil {
		return nil, err
	}
	s := &initialState{listening: listener.Addr().String(), self: c.candidate(address)}
	s.view = membership.View{Number: 1, Slots: 1, Members: []membership.Member{s.self}}
	s.transport, err = c.tcp(s, listener, []string{address})
	return s, err
}

// joinState asks the seeds for a place in their view.
func (c *Config) joinState(ctx context.Context, seeds []string) (*initialState, error) {
	if len(seeds) == 0 {
		return nil, errors.New("no seeds: name the address of a member, or Create a group")
	}
	listener, address, err := c.listen(hostTowards(seeds[0]))
	if err != nil {
		return nil, err
	}
	s := &initialState{listening: listener.Addr().String(), self: c.candidate(address)}
	reply, err := sendRequest(ctx, tcp.Config{Group: c.Group, TLS: c.TLS}, seeds, encodeRequest(requestJoin, &s.self))
	if err == nil && reply.rank == protocol.NoRank {
		err = errors.New("a member answered a join request with a view only")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("group %q at %v: %w", c.Group, seeds, err), listener.Close())
	}
	s.self.Rank, s.view, s.start = reply.rank, reply.view, reply.start
	addresses := make([]string, reply.view.Slots)
	for _, m := range reply.view.Members {
		addresses[m.Rank] = m.Address
	}
	s.transport, err = c.tcp(s, listener, addresses)
	return s, err
}

// candidate is this process as it asks to join.
func (c *Config) candidate(address string) membership.Member {
	return membership.Member{
		Identity: cmp.Or(c.ID, address), Address: address, Domain: c.FailureDomain,
		Incarnation: uint64(time.Now().UnixNano()),
	}
}

// listen opens a socket and returns the address under which others reach it. The
// host is that of this process if Listen does not name one.
func (c *Config) listen(host string) (net.Listener, string, error) {
	address := cmp.Or(c.Listen, net.JoinHostPort(host, "0"))
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", &ConfigError{"Listen", fmt.Sprintf("is %q: write host:port", address)}
	}
	if c.Advertise == "" && unspecific(host) {
		return nil, "", &ConfigError{"Listen", fmt.Sprintf("is %q, which others cannot dial: set Advertise", address)}
	}
	if err := checkAdvertised(c.Advertise); err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return l, cmp.Or(c.Advertise, net.JoinHostPort(host, port)), nil
}

// unspecific reports whether a host stands for all of this machine's addresses.
func unspecific(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// checkAdvertised refuses an address that other members cannot dial.
func checkAdvertised(address string) error {
	if address == "" {
		return nil
	}
	if host, port, err := net.SplitHostPort(address); err != nil || unspecific(host) || port == "0" || port == "" {
		return &ConfigError{"Advertise", fmt.Sprintf("is %q: write the host:port that other members dial", address)}
	}
	return nil
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
