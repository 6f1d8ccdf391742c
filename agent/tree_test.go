package agent

import (
	"reflect"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
)

// Children of holes, of suspected and of stalled members take their position.
func TestTreeGoesAround(t *testing.T) {
	members := func(ranks ...int) (list []pleach.Member) {
		for _, r := range ranks {
			list = append(list, pleach.Member{Rank: r, ID: string(rune('a' + r))})
		}
		return list
	}
	all := members(0, 1, 2, 3, 4, 5, 6, 7)
	for _, c := range []struct {
		name    string
		members []pleach.Member
		status  pleach.Status
		want    []api.TreeEdge
	}{
		{"whole", all, pleach.Status{}, []api.TreeEdge{
			{Rank: 1, Parent: 0},
			{Rank: 2, Parent: 0},
			{Rank: 3, Parent: 1},
			{Rank: 4, Parent: 0},
			{Rank: 5, Parent: 1},
			{Rank: 6, Parent: 2},
			{Rank: 7, Parent: 3},
		}},
		{"hole", members(0, 2, 3, 7), pleach.Status{}, []api.TreeEdge{
			{Rank: 2, Parent: 0},
			{Rank: 3, Parent: 0},
			{Rank: 7, Parent: 3},
		}},
		{"suspected", all[:4], pleach.Status{Suspects: []pleach.Suspect{{Rank: 1}}}, []api.TreeEdge{
			{Rank: 1, Parent: 0, Avoided: true}, {Rank: 2, Parent: 0}, {Rank: 3, Parent: 0},
		}},
		{"stalled", all[:4], pleach.Status{Peers: []pleach.PeerStatus{{Rank: 1, Stalled: true}, {Rank: 2}}}, []api.TreeEdge{
			{Rank: 1, Parent: 0, Avoided: true}, {Rank: 2, Parent: 0}, {Rank: 3, Parent: 0},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := treeOf(pleach.NewView(4, 8, c.members...), c.status)
			if err != nil {
				t.Fatal(err)
			}
			if want := (&api.Tree{View: 4, Edges: c.want}); !reflect.DeepEqual(tree, want) {
				t.Errorf("got %+v, want %+v", tree, want)
			}
		})
	}
}

// Every member below another root is reached from it.
func TestTreeReachesAllMembers(t *testing.T) {
	var list []pleach.Member
	for rank := range 101 {
		if rank%7 != 3 {
			list = append(list, pleach.Member{Rank: rank})
		}
	}
	tree, err := treeOf(pleach.NewView(1, 101, list...),
		pleach.Status{Rank: 40, Suspects: []pleach.Suspect{{Rank: 41}, {Rank: 42}}})
	if err != nil {
		t.Fatal(err)
	}
	parents := make(map[int]int)
	for _, e := range tree.Edges {
		parents[e.Rank] = e.Parent
	}
	if len(parents) != len(list)-1 || tree.Root != 40 {
		t.Fatalf("got %d members below %d", len(parents), tree.Root)
	}
	for _, m := range list {
		rank, known := m.Rank, true
		for hops := 0; rank != 40; hops++ {
			rank, known = parents[rank]
			if !known || hops > len(list) {
				t.Fatalf("no way from %d to the root", m.Rank)
			}
		}
	}
}
