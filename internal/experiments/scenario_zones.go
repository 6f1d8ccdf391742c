package experiments

import (
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// What a network of two levels changes in a scenario that knows nothing of zones.

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
