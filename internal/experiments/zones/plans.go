package zones

import (
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// layer numbers the broadcasts that a message to the fleet may consist of. With k
// delegates, 0 … k−1 go over the backbone, from that delegate of the origin's zone;
// k … 2k−1 through a zone, from that delegate of it; 2k through the origin's zone, from
// the origin.
type layer uint8

// plans are the plans of all layers.
type plans struct {
	Layout
	origin  protocol.Rank
	byLayer []*broadcast.Plan
	// takeover is how long a delegate waits for the one before it.
	takeover protocol.Time
}

func (s *Scenario) plans() (*plans, error) {
	p := &plans{Layout: s.Layout, origin: s.Origin, takeover: s.Takeover}
	add := func(plan *broadcast.Plan, err error) error {
		p.byLayer = append(p.byLayer, plan)
		return err
	}
	for i := range s.Delegates {
		if err := add(s.backbonePlan(i)); err != nil {
			return nil, err
		}
	}
	for i := range s.Delegates {
		if err := add(s.zonePlan(i)); err != nil {
			return nil, err
		}
	}
	return p, add(s.zonePlan(s.Origin % s.Members))
}

// zonePlan is a broadcast in a zone from one of its members.
func (s *Scenario) zonePlan(root protocol.Rank) (*broadcast.Plan, error) {
	tree, err := topology.New(s.Shape, topology.Interleaved, s.Members, root)
	if err != nil {
		return nil, err
	}
	finish := topology.FinishTime(tree, s.L, s.O)
	correction, err := s.correction(s.Members, s.L, s.O, finish)
	if err != nil {
		return nil, err
	}
	c := broadcast.Config{
		Size: s.Members, Root: root, Dissemination: broadcast.Tree{Tree: tree},
		Correction: correction, Start: s.Start,
	}
	if s.Start == broadcast.Synchronized && correction != nil {
		c.At = finish
	}
	return broadcast.NewPlan(c)
}

// backbonePlan is a broadcast on the backbone from a delegate of the origin's zone.
// Processes there have no common clock, and most messages of a correction that does not
// wait for answers would cross zones. So correction is delayed, for as long as no answer
// can take if no delegate is dead.
func (s *Scenario) backbonePlan(delegate protocol.Rank) (*broadcast.Plan, error) {
	home := s.Origin / s.Members
	zones, err := topology.New(s.BackboneShape, topology.Interleaved, s.Zones, home)
	if err != nil {
		return nil, err
	}
	root := s.onBackbone(home, delegate)
	return broadcast.NewPlan(broadcast.Config{
		Size: s.Zones * s.Delegates, Root: root,
		Dissemination: broadcast.Tree{Tree: backbone{zones, s.Delegates, root}},
		Correction:    broadcast.Delayed{Delay: s.backboneDelay(zones), Paced: true},
	})
}

// backboneDelay is longer than the backbone's tree takes, and an answer after that.
func (s *Scenario) backboneDelay(zones topology.Tree) protocol.Time {
	return s.backboneTime(zones) + 2*(2*s.FarO+s.FarL)
}

// backboneTime is how long the tree over the zones takes at most. On each of its levels, a
// lead tells the other delegates first.
func (s *Scenario) backboneTime(zones topology.Tree) protocol.Time {
	locals := protocol.Time(s.Delegates-1) * s.O
	deepest := 0
	for z := range s.Zones {
		deepest = max(deepest, zones.Depth(z))
	}
	return topology.FinishTime(zones, s.FarL, s.FarO) + protocol.Time(deepest+1)*locals + 2*s.O + s.L
}
