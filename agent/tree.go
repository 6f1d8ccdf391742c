package agent

import (
	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Tree implements [api.Agent].
func (a *Agent) Tree() (*api.Tree, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	return treeOf(g.View(), g.Status())
}

// treeOf lays the tree of this member over a view as the stream protocol does: the children
// of a hole, and of a bypassed member, take its position.
func treeOf(view pleach.View, s pleach.Status) (*api.Tree, error) {
	tree, err := topology.New(topology.Shape{}, topology.Interleaved, protocol.Rank(view.Slots), protocol.Rank(s.Rank))
	if err != nil {
		return nil, err
	}
	avoided := make(map[int]bool)
	for i := range s.Suspects {
		avoided[s.Suspects[i].Rank] = true
	}
	for i := range s.Peers {
		if p := &s.Peers[i]; p.Stalled {
			avoided[p.Rank] = true
		}
	}
	t := &api.Tree{View: view.Number, Root: s.Rank, Edges: make([]api.TreeEdge, 0, view.Size())}
	for _, m := range view.Members() {
		if m.Rank == s.Rank {
			continue
		}
		parent, _ := tree.Parent(protocol.Rank(m.Rank))
		for int(parent) != s.Rank && (avoided[int(parent)] || !view.Has(int(parent))) {
			parent, _ = tree.Parent(parent)
		}
		t.Edges = append(t.Edges, api.TreeEdge{Rank: m.Rank, Parent: int(parent), Avoided: avoided[m.Rank]})
	}
	return t, nil
}
