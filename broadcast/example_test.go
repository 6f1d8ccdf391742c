package broadcast_test

import (
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// A broadcast along the Lamé tree of Corrected Trees, Figure 5, under a LogP
// clock with L = o = 1. Rank 1 is dead, so that 5 and 7 get nothing from the
// tree; their neighbors on the ring correct that.
func Example() {
	tree, err := topology.New(topology.Lame(3), topology.Interleaved, 9, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := broadcast.NewPlan(broadcast.Config{
		Size:          9,
		Dissemination: broadcast.Tree{Tree: tree},
		Correction:    broadcast.Checked{},
		Start:         broadcast.Synchronized,
		At:            topology.FinishTime(tree, 1, 1),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: 1, O: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	sim.Trace = func(e logp.Event) {
		if e.What == logp.Colored {
			fmt.Printf("%2d: %d has it from %d, %s\n", e.Time, e.Rank, e.Peer, e.Phase)
		}
	}
	const anySeed = 1 // nothing is left to chance here
	result, err := sim.Run(plan.Group().Machines(anySeed), logp.Faults{Dead: []protocol.Rank{1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d of %d live processes are not reached\n", result.Unreached, result.Live)
	// Output:
	//  4: 2 has it from 0, dissemination
	//  5: 3 has it from 0, dissemination
	//  6: 4 has it from 0, dissemination
	//  7: 6 has it from 0, dissemination
	//  7: 8 has it from 2, dissemination
	// 10: 5 has it from 6, correction
	// 10: 7 has it from 8, correction
	// 0 of 8 live processes are not reached
}
