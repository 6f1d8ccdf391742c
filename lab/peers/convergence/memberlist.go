package main

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/lab/bench/stabilization"
)

// standard is memberlist as it comes.
func standard() *memberlist.Config { return memberlist.DefaultLANConfig() }

// tuned is memberlist set to notice deaths soon, for a good network. False
// suspicions are refuted in time on a host that is not too busy.
func tuned() *memberlist.Config {
	c := standard()
	c.ProbeInterval, c.ProbeTimeout = 200*time.Millisecond, 100*time.Millisecond
	c.SuspicionMult = 3
	c.GossipInterval, c.GossipNodes = 20*time.Millisecond, 4
	return c
}

// memberlistSurvivor is a member whose list is watched by its events.
func memberlistSurvivor(config func() *memberlist.Config) func(context.Context, *stabilization.Survivor) error {
	return func(ctx context.Context, s *stabilization.Survivor) error {
		c := config()
		if err := configure(c, s); err != nil {
			return err
		}
		c.Events = newWatch(s)
		list, err := memberlist.Create(c)
		if err != nil {
			return err
		}
		if err := joinAll(ctx, s, list.Join); err != nil {
			return err
		}
		s.Ready()
		<-ctx.Done()
		return nil // without leaving: the others see a crash
	}
}

// configure gives a member its address, and its rank as its name.
func configure(c *memberlist.Config, s *stabilization.Survivor) error {
	if err := releasePort(s); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Place.Addresses[s.Place.Rank])
	if err != nil {
		return err
	}
	c.Name = strconv.Itoa(int(s.Place.Rank))
	c.BindAddr, c.AdvertiseAddr = host, host
	c.BindPort, err = strconv.Atoi(port)
	if err != nil {
		return err
	}
	c.AdvertisePort = c.BindPort
	c.LogOutput = io.Discard
	return nil
}

// releasePort closes the inherited socket, as memberlist opens the port itself, and
// waits until the port is free.
func releasePort(s *stabilization.Survivor) error {
	if s.Again {
		return nil
	}
	l, err := s.Place.Listener()
	if err != nil {
		return err
	}
	l.Close()
	for range 1000 {
		l, err = net.Listen("tcp", s.Place.Addresses[s.Place.Rank])
		if err == nil {
			return l.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// joinAll exchanges all state with all members, twice: the first time, a member that
// rejoins learns that it is thought dead, and the second time all others learn that
// it is not. Gossip does the same, but a busy host loses it, which costs a minute.
func joinAll(ctx context.Context, s *stabilization.Survivor, join func([]string) (int, error)) error {
	others := make([]string, 0, len(s.Place.Addresses))
	for rank, address := range s.Place.Addresses {
		if rank != int(s.Place.Rank) {
			others = append(others, address)
		}
	}
	for range 2 {
		for {
			n, err := join(others)
			if n == len(others) {
				break
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(100 * time.Millisecond): // some have not started yet
			}
		}
	}
	return nil
}

// watch reports the missing ranks, at each event.
type watch struct {
	survivor *stabilization.Survivor
	mu       sync.Mutex
	present  []bool // by rank
}

func newWatch(s *stabilization.Survivor) *watch {
	return &watch{survivor: s, present: make([]bool, len(s.Place.Addresses))}
}

// NotifyJoin implements [memberlist.EventDelegate].
func (w *watch) NotifyJoin(n *memberlist.Node) { w.set(n.Name, true) }

// NotifyLeave implements [memberlist.EventDelegate].
func (w *watch) NotifyLeave(n *memberlist.Node) { w.set(n.Name, false) }

// NotifyUpdate implements [memberlist.EventDelegate].
func (w *watch) NotifyUpdate(*memberlist.Node) {}

func (w *watch) set(name string, present bool) {
	rank, err := strconv.Atoi(name)
	if err != nil || rank < 0 || rank >= len(w.present) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.present[rank] = present
	var missing []int
	for r, there := range w.present {
		if !there {
			missing = append(missing, r)
		}
	}
	w.survivor.Sees(0, missing) // its lists have no numbers
}
