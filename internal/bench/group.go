package bench

import (
	"context"
	"fmt"
	"net"
	"time"
)

// group is all members of a system.
type group interface {
	// broadcast lets the root send a burst, and waits until every live member
	// that can be reached has it, but not beyond the limit.
	broadcast(ctx context.Context, limit time.Duration) (outcome, error)
	// counts adds up what live members have counted.
	counts() (counts, error)
	close() error
}

// outcome is what came of a burst.
type outcome struct {
	complete int           // messages that every live member got
	took     time.Duration // if that is the whole burst
	cpu      time.Duration // if it can be told only by burst
}

// plan is what a group is made from.
type plan struct {
	system      system
	members     int
	dead        map[int]bool
	size, burst int
	// reachable is how many live members besides the root the system can reach
	// at all: waiting for others would be waiting for nothing.
	reachable int
}

func (p *plan) live() int { return p.members - len(p.dead) }

// newPlan sees how far the system gets with so many dead.
func newPlan(c *Config, name string, dead int) (*plan, error) {
	s, ok := systemOf(name)
	if !ok {
		return nil, fmt.Errorf("bench: there is no system %q", name)
	}
	tree, err := binomial(c.Members)
	if err != nil {
		return nil, err
	}
	burst, _ := c.rounds()
	p := &plan{system: s, members: c.Members, size: c.Size, burst: burst, dead: chooseDead(tree, dead, c.Seed)}
	p.reachable = p.live() - 1
	if s.tree != nil {
		if tree, err = s.tree(c.Members); err != nil {
			return nil, err
		}
		p.reachable = reachable(tree, p.dead)
	}
	return p, nil
}

// listen opens a socket for everybody, and closes those of the dead: their
// addresses are known, but nobody is there.
func (p *plan) listen() (listeners []*net.TCPListener, addresses []string, err error) {
	listeners = make([]*net.TCPListener, p.members)
	for r := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			closeListeners(listeners)
			return nil, nil, fmt.Errorf("bench: cannot open a socket for each of %d members: %w", p.members, err)
		}
		listeners[r] = l.(*net.TCPListener)
		addresses = append(addresses, l.Addr().String())
	}
	// Only now, or the next one would get the same port.
	for r := range p.dead {
		listeners[r].Close()
		listeners[r] = nil
	}
	return listeners, addresses, nil
}

func closeListeners(listeners []*net.TCPListener) {
	for _, l := range listeners {
		if l != nil {
			l.Close()
		}
	}
}
