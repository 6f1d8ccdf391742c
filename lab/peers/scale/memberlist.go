package main

import (
	"io"
	"strconv"

	"github.com/hashicorp/memberlist"
)

// lanConfig is memberlist as it comes, on a free port of the loopback interface.
func lanConfig(rank int) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = strconv.Itoa(rank)
	c.BindAddr, c.BindPort = "127.0.0.1", 0
	c.AdvertiseAddr = "127.0.0.1"
	c.LogOutput = io.Discard
	return c
}

// memberlistMember is a member, and the delegate of its events.
type memberlistMember struct {
	*memberlist.Memberlist
	dropped func(rank int)
}

func startMemberlist(rank int, lost func(rank int)) (member, error) {
	m := &memberlistMember{dropped: lost}
	c := lanConfig(rank)
	c.Events = m
	var err error
	m.Memberlist, err = memberlist.Create(c)
	return m, err
}

func (m *memberlistMember) address() string { return m.LocalNode().Address() }
func (m *memberlistMember) knows() int      { return m.NumMembers() }
func (m *memberlistMember) kill() error     { return m.Shutdown() }

func (m *memberlistMember) join(address string) error {
	_, err := m.Join([]string{address})
	return err
}

// NotifyJoin implements [memberlist.EventDelegate].
func (m *memberlistMember) NotifyJoin(*memberlist.Node) {}

// NotifyUpdate implements [memberlist.EventDelegate].
func (m *memberlistMember) NotifyUpdate(*memberlist.Node) {}

// NotifyLeave implements [memberlist.EventDelegate].
func (m *memberlistMember) NotifyLeave(n *memberlist.Node) {
	if rank, err := strconv.Atoi(n.Name); err == nil {
		m.dropped(rank)
	}
}
