package broadcast

import (
	"math/rand/v2"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// binomial is the tree of Pleach and of bare.
func binomial(members int) (topology.Tree, error) {
	return topology.New(topology.Binomial(), topology.Interleaved, protocol.Rank(members), 0)
}

// chooseDead spreads the dead over all ranks but the root's: one in each of as
// many stretches. Every other one is an inner node of the tree if the stretch has
// one, as an inner node cuts off others.
func chooseDead(tree topology.Tree, dead int, seed uint64) map[int]bool {
	rng := rand.New(rand.NewPCG(seed, uint64(dead)))
	others := int(tree.Size()) - 1
	chosen := make(map[int]bool, dead)
	for i := range dead {
		var all, inner []int
		for r := 1 + i*others/dead; r < 1+(i+1)*others/dead; r++ {
			all = append(all, r)
			if _, ok := tree.Child(protocol.Rank(r), 0); ok {
				inner = append(inner, r)
			}
		}
		if i%2 == 0 && len(inner) > 0 {
			all = inner
		}
		chosen[all[rng.IntN(len(all))]] = true
	}
	return chosen
}

// reachable counts the live members, without the root, that a tree reaches past
// the dead.
func reachable(tree topology.Tree, dead map[int]bool) int {
	count, next := 0, []protocol.Rank{0}
	for len(next) > 0 {
		r := next[0]
		next = next[1:]
		for i := 0; ; i++ {
			child, ok := tree.Child(r, i)
			if !ok {
				break
			}
			if !dead[int(child)] {
				count++
				next = append(next, child)
			}
		}
	}
	return count
}
