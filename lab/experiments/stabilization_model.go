package experiments

import (
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// ThesisModel is the membership thesis's model of the stabilization time Ts
// (Varma 2006, Eqs. 4.1 and 4.2): its protocol goes down a tree and back up once,
//
//	Ts = 2·L·(H−1) + Ocp·H
//
// with H levels, L half of a round trip, and Ocp the time to compute the new tree.
type ThesisModel struct {
	// Children is a, how many a parent has at most.
	Children protocol.Rank
	// Latency is L, Compute Ocp.
	Latency, Compute float64
}

// Base is the thesis's base model in terms of LogP: half of a round trip is a
// hop, and computing takes no time.
func (s *Stabilization) Base(children protocol.Rank) ThesisModel {
	return ThesisModel{Children: children, Latency: float64(2*s.O + s.L)}
}

// Contention is its refinement (§6.1.2): L is measured between a parent and all
// of its children at once. Under LogP that is half of 2·(2o+L) + (a−1)·o, since
// the parent has one port to send to them in a row.
func (s *Stabilization) Contention(children protocol.Rank) ThesisModel {
	m := s.Base(children)
	m.Latency += float64(children-1) * float64(s.O) / 2
	return m
}

// Time is Ts for a group of some size.
func (m ThesisModel) Time(size protocol.Rank) float64 {
	levels := 0
	for reached, width := protocol.Rank(0), protocol.Rank(1); reached < size; width *= m.Children {
		reached += width
		levels++
	}
	return 2*m.Latency*float64(levels-1) + m.Compute*float64(levels)
}

// Model is the same for the protocol of package membership: a report through its relays,
// then five ways down or up a binomial tree of the members that are left. What contention
// there is on these ways is in the tree's finish time; that many reports wait for the
// coordinator's port is not, and neither that the second way up may end early,
// with a majority.
func (s *Stabilization) Model() (protocol.Time, error) {
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, s.Size-protocol.Rank(s.Dead), 0)
	if err != nil {
		return 0, err
	}
	model := 5 * topology.FinishTime(tree, s.L, s.O)
	if s.Watchers > 0 {
		model += protocol.Time(1+len(membership.Relays(int(s.Size)))) * (2*s.O + s.L)
	}
	return model, nil
}
