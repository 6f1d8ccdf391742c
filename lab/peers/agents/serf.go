package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/serf/client"
)

// serfAgent is a serf agent behind its RPC interface.
type serfAgent struct {
	*client.RPCClient
	first string // an agent to join
}

// startSerf starts agents that know of no other one.
func startSerf(profile string) starter {
	return func(f *fleet, i int) (args []string, connect func() (agent, error)) {
		args = []string{
			"serf", "agent", "-node", nameOf(i), "-bind", f.addresses[i], "-rpc-addr", f.local[i],
			"-profile", profile, "-log-level", "warn",
		}
		connect = func() (agent, error) {
			c, err := client.NewRPCClient(f.local[i])
			return &serfAgent{c, f.addresses[0]}, err
		}
		return args, connect
	}
}

// join exchanges all state with the first agent, twice: the first time, that one learns of
// this agent, and the second time this one learns of those that came meanwhile.
func (s *serfAgent) join() error {
	for range 2 {
		if _, err := s.Join([]string{s.first}, false); err != nil {
			return err
		}
	}
	return nil
}

func (s *serfAgent) alive(context.Context) (names []string, err error) {
	members, err := s.Members()
	for i := range members {
		if members[i].Status == "alive" {
			names = append(names, members[i].Name)
		}
	}
	return names, err
}

func (s *serfAgent) subscribe(_ context.Context, got func(string)) error {
	events := make(chan map[string]any, 512)
	if _, err := s.Stream("user", events); err != nil {
		return err
	}
	go func() {
		for e := range events {
			got(fmt.Sprintf("%s", e["Payload"]))
		}
	}()
	return nil
}

func (s *serfAgent) send(_ context.Context, text string) error {
	return s.UserEvent("bench", []byte(text), false) // serf would hold back one that may be coalesced
}

func (s *serfAgent) close() error { return s.Close() }
