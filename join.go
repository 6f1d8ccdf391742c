package pleach

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/joining"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

// Create makes this process the first member of a new group. Others join it. ctx
// bounds the call, not the membership.
//
// A process that is started again by the same command would create a second group of that
// name. With seeds, addresses at which a group may be running, Create asks there first, and
// joins the group that it finds. Processes that may all be the first one, or be partitioned
// when they start, use [Join] with Config.Expect instead.
func Create(ctx context.Context, c Config, seeds ...string) (*Group, error) {
	if len(seeds) > 0 {
		if err := c.check(modeCreate); err != nil {
			return nil, fmt.Errorf("pleach: %s: %w", modeCreate, err)
		}
		c.Expect = 1
		return Join(ctx, c, seeds...)
	}
	return open(ctx, c, modeCreate, func(c *Config) (*initialState, error) { return createState(c) })
}

// Join makes this process a member of a running group. Seeds are addresses of
// its members, of which one that is alive is enough. Join returns when the
// members have installed a view with this process in it; ctx bounds that wait, not the
// membership. Join tries again while that may help, and logs why; if it cannot, Join
// returns at once. The error is then a [*JoinError]. Join skips this process's own
// address among the seeds, so that all processes may be given the same seeds.
//
// With Config.Expect, Join is the one start command of all members. If it finds no
// running group, it begins one together with others, by agreement: see there.
func Join(ctx context.Context, c Config, seeds ...string) (*Group, error) {
	return open(ctx, c, modeJoin,
		func(c *Config) (*initialState, error) { return joinState(c, ctx, seeds, settingsOf(c)) })
}

// createState is the state of a group of one.
func createState(c *Config) (*initialState, error) {
	listener, address, err := listen(c, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	s := &initialState{listening: listener.Addr().String(), self: candidateOf(c, address)}
	saved, err := s.open(c)
	if err == nil && saved != nil {
		err = fmt.Errorf("Config.Recovery.DataDir %s has a member of view %d: Join its group, or remove the directory",
			c.Recovery.DataDir, saved.View.Number)
	}
	if err != nil {
		s.data.Close()
		return nil, errors.Join(err, listener.Close())
	}
	s.self.Incarnation, s.self.Synced = member.FirstIncarnation, c.State != nil
	s.view = membership.View{Number: 1, Version: s.self.Version, Slots: 1, Members: membership.MembersOf(s.self)}
	s.transport, err = newTransport(c, s, listener, []string{address})
	if err != nil {
		s.data.Close()
	}
	return s, err
}

// joinState asks the seeds for a place in their view, or begins a group with others. Settings are
// compared with those of others, unless they are nil.
func joinState(c *Config, ctx context.Context, seeds []string, compare control.Settings) (*initialState, error) {
	if len(seeds) == 0 && c.Expect == 0 {
		return nil, errors.New("no seeds: name the address of a member, or Create a group")
	}
	listener, address, err := listen(c, client.HostTowards(slices.Concat(seeds, []string{""})[0]))
	if err != nil {
		return nil, err
	}
	s := &initialState{listening: listener.Addr().String(), self: candidateOf(c, address)}
	s.seeds = slices.DeleteFunc(slices.Clone(seeds), func(seed string) bool {
		return seed == s.self.Address || client.SameSocket(seed, s.listening)
	})
	if err := s.findPlace(c, ctx, listener, compare); err != nil {
		s.data.Close()
		return nil, &JoinError{Group: c.Group, Seeds: seeds, Permanent: client.Permanent(err), Err: asSettingError(err)}
	}
	addresses := make([]string, s.view.Slots)
	for _, m := range s.view.Members.All() {
		addresses[m.Rank] = s.elsewhere.Address(m)
	}
	s.transport, err = newTransport(c, s, listener, addresses)
	if err != nil {
		s.data.Close()
	}
	return s, err
}

// findPlace finds the place of this process in its group.
func (s *initialState) findPlace(c *Config, ctx context.Context, listener net.Listener,
	compare control.Settings,
) error {
	saved, err := s.open(c)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if c.Expect > 0 {
		slices.Sort(s.seeds)
		s.seeds = slices.Compact(s.seeds)
	}
	p, err := joining.Find(ctx, joining.Config{
		Config: lifecycle.Config{
			Self: s.self, Seeds: s.seeds, Expect: c.Expect, Replace: c.Recovery.Replace, Place: saved, Former: s.former,
			NewNonce: newNonce, Speaks: speaks, Settings: compare, Arbiter: c.Arbiter != nil,
		},
		Client: clientOf(c), Listener: listener, DataDir: s.data, Heartbeat: heartbeatTimes(c), Grant: grantOf(c),
		SharedBytes: max(0, c.Limits.SharedBytes),
		Verify:      func(v *membership.View, claim tcp.Claim) error { return verifyClaim(c, v, claim) },
	})
	if err != nil {
		return err
	}
	s.self, s.view, s.start, s.decisions, s.began = p.Self, p.View, p.Start, p.Decisions, p.Began
	s.candidate, s.elsewhere, s.sends, s.sendsFor = p.Candidate, p.Elsewhere, p.Sends, p.SendsFor
	return nil
}

// candidateOf is this process as it asks to join.
func candidateOf(c *Config, address string) membership.Member {
	return membership.Member{
		Identity: cmp.Or(c.ID, address), Address: address, Domain: c.FailureDomain, Meta: c.Meta, Observer: c.Observer,
		Nonce: newNonce(), Version: wire.Newest(),
	}
}

// listen opens a socket and returns the address under which others reach it. The
// host is that of this process if Listen does not name one.
func listen(c *Config, host string) (net.Listener, string, error) {
	address := cmp.Or(c.Listen, net.JoinHostPort(host, "0"))
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", &ConfigError{Field: "Listen", Reason: fmt.Sprintf("is %q: write host:port", address)}
	}
	if c.Advertise == "" && client.Unspecific(host) {
		return nil, "", &ConfigError{Field: "Listen", Reason: fmt.Sprintf("is %q, which others cannot dial: set Advertise",
			address)}
	}
	if c.Advertise != "" && !client.Dialable(c.Advertise) {
		return nil, "", &ConfigError{
			Field:  "Advertise",
			Reason: fmt.Sprintf("is %q: write the host:port that other members dial", c.Advertise),
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	advertised := cmp.Or(c.Advertise, net.JoinHostPort(host, port))
	if err := checkCertificate(c, cmp.Or(c.ID, advertised), advertised); err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	return l, advertised, nil
}

// newNonce draws the number that tells this start of a process from all others.
func newNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:]) | 1
}
