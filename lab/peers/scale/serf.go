package main

import (
	"io"
	"strconv"

	"github.com/hashicorp/serf/serf"
)

// serfMember is a member of a serf cluster with its defaults.
type serfMember struct{ *serf.Serf }

func startSerf(rank int, lost func(rank int)) (member, error) {
	events := make(chan serf.Event, 512)
	c := serf.DefaultConfig()
	c.Init()
	c.MemberlistConfig = lanConfig(rank)
	c.NodeName, c.EventCh, c.LogOutput = c.MemberlistConfig.Name, events, io.Discard
	s, err := serf.Create(c)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			select {
			case <-s.ShutdownCh():
				return
			case e := <-events:
				follow(e, lost)
			}
		}
	}()
	return serfMember{s}, nil
}

// follow passes the members on that have failed.
func follow(e serf.Event, lost func(rank int)) {
	m, ok := e.(serf.MemberEvent)
	if !ok || m.Type != serf.EventMemberFailed {
		return
	}
	for _, member := range m.Members {
		if rank, err := strconv.Atoi(member.Name); err == nil {
			lost(rank)
		}
	}
}

func (s serfMember) address() string { return s.Memberlist().LocalNode().Address() }
func (s serfMember) knows() int      { return s.NumNodes() }
func (s serfMember) kill() error     { return s.Shutdown() }

func (s serfMember) join(address string) error {
	_, err := s.Join([]string{address}, true)
	return err
}
