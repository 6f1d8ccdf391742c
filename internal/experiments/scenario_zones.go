package experiments

import (
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// What a network of two levels changes in a scenario that knows nothing of zones.

// farthest are the parameters of the most expensive links.
func (s *Scenario) farthest() (l, o protocol.Time) {
	if s.Zones == nil {
		return s.L, s.O
	}
	return s.Zones.L, s.Zones.O
}

// FinishTime is when the scenario's tree is through if no process is dead.
func (s *Scenario) FinishTime() (protocol.Time, error) {
	tree, err := s.tree()
	if err != nil {
		return 0, err
	}
	return s.finishTime(tree), nil
}

// finishInZones is the same where links differ.
func (s *Scenario) finishInZones(tree topology.Tree) (finish protocol.Time) {
	colored := make([]protocol.Time, tree.Size())
	for r := range topology.Subtree(tree, tree.Root()) {
		free := colored[r]
		for child := range topology.Children(tree, r) {
			l, o := s.L, s.O
			if s.Zones.Of[r] != s.Zones.Of[child] {
				l, o = s.Zones.L, s.Zones.O
			}
			free += o
			colored[child] = free + l + o
			finish = max(finish, colored[child])
		}
	}
	return finish
}

// clocks returns the machines of a run with clocks that are right in zones. A process that
// gossips reckons that a message took as long as the longest does.
func (s *Scenario) clocks(machines []protocol.Machine[broadcast.Body]) []protocol.Machine[broadcast.Body] {
	if s.Zones == nil || s.Dissemination != "gossip" {
		return machines
	}
	early := int32(s.Zones.Hop() - (2*s.O + s.L))
	clocked := make([]protocol.Machine[broadcast.Body], len(machines))
	for r, m := range machines {
		clocked[r] = &clock{Machine: m, zone: s.Zones.Of[r], zones: s.Zones.Of, early: early}
	}
	return clocked
}

// clock is a machine that learns of messages from its zone how much less they took.
type clock struct {
	protocol.Machine[broadcast.Body]
	zones []int32
	zone  int32
	early int32
}

func (c *clock) Receive(now protocol.Time, m *protocol.Message[broadcast.Body]) {
	if c.zones[m.From] == c.zone {
		m.Body.Clock -= c.early
	}
	c.Machine.Receive(now, m)
}
