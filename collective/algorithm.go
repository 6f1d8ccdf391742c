package collective

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// AlgorithmRule says which algorithm a collective uses from a number of bytes and of
// tasks on.
type AlgorithmRule struct {
	Collective string `json:"collective"`
	From       int    `json:"from_bytes"`
	Tasks      int    `json:"from_tasks"`
	Algorithm  string `json:"algorithm"`
}

// String returns the rule as one line of text.
func (r AlgorithmRule) String() string {
	return fmt.Sprintf("%-14s from %6d bytes, %d tasks: %s", r.Collective, r.From, r.Tasks, r.Algorithm)
}

// Algorithms returns the rules by which calls select their algorithms. Of the rules of a
// collective, the last one that applies counts.
func Algorithms() []AlgorithmRule {
	t := engine.StandardThresholds()
	return []AlgorithmRule{
		{engine.Barrier.String(), 0, 1, "dissemination"},
		{engine.Broadcast.String(), 0, 1, "binomial tree"},
		{engine.Broadcast.String(), t.Tree + 1, 1, fmt.Sprintf("chain, in segments of %d bytes; the first one by a binomial tree", t.Segment)},
		{engine.Scatter.String(), 0, 1, "binomial tree"},
		{engine.Gather.String(), 0, 1, "binomial tree"},
		{engine.Reduce.String(), 0, 1, "binomial tree"},
		{engine.Reduce.String(), t.Chain, 1, fmt.Sprintf("chain, in segments of %d bytes", t.Segment)},
		{engine.Allreduce.String(), 0, 1, "recursive doubling"},
		{engine.Allreduce.String(), t.Halving, 1, "recursive halving and doubling (Rabenseifner)"},
		{engine.Allgather.String(), 0, 1, "Bruck"},
		{engine.ReduceScatter.String(), 0, 1, "1-factor"},
		{engine.Alltoall.String(), 0, 1, "1-factor"},
		{engine.Alltoall.String(), 0, t.Bruck, "Bruck, for parts that are small"},
		{engine.Alltoall.String(), t.BruckPart + 1, t.Bruck, "1-factor, for those that are not"},
		{engine.Scan.String(), 0, 1, "recursive doubling"},
		{engine.Agree.String(), 0, 1, "vote, accept, commit"},
	}
}
