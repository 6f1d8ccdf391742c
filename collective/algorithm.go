package collective

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/collective/loggp"
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

// Algorithms returns the rules by which the communicator's calls select their algorithms. Of
// the rules of a collective, the last one that applies counts.
func (c Comm) Algorithms() []AlgorithmRule {
	return rulesOf(core(c).Thresholds())
}

// Algorithms returns the rules of [Comm.Algorithms] for a job of tasks that are spread evenly
// over hosts, those of each host following each other.
func (n Network) Algorithms(tasks, hosts int) []AlgorithmRule {
	t := engine.ThresholdsOf(loggp.Model{Network: n.model(), Layout: loggp.Even(max(1, tasks), max(1, hosts))})
	return rulesOf(&t)
}

// byLevels names the algorithms of two levels.
const byLevels = "two levels: inside hosts, and between one task of each"

func rulesOf(t *engine.Thresholds) []AlgorithmRule {
	var r rules
	r.add(engine.Barrier, 0, "dissemination")
	r.addIf(t.Levels.Barrier, engine.Barrier, 0, byLevels)
	r.add(engine.Broadcast, 0, "binomial tree")
	r.addIf(t.Levels.Broadcast, engine.Broadcast, 0, byLevels)
	r.add(engine.Broadcast, t.Tree+1, fmt.Sprintf("chain, in segments of %d bytes; the first one by a tree", t.Segment))
	r.add(engine.Scatter, 0, "binomial tree")
	r.add(engine.Gather, 0, "binomial tree")
	r.addBelow(t.Levels.Reduce, engine.Reduce,
		AlgorithmRule{From: 0, Algorithm: "binomial tree"},
		AlgorithmRule{From: t.Chain, Algorithm: fmt.Sprintf("chain, in segments of %d bytes", t.Segment)})
	r.addBelow(t.Levels.Allreduce, engine.Allreduce,
		AlgorithmRule{From: 0, Algorithm: "recursive doubling"},
		AlgorithmRule{From: t.Halving, Algorithm: "recursive halving and doubling (Rabenseifner)"})
	r.add(engine.Allgather, 0, "Bruck")
	r.add(engine.ReduceScatter, 0, "1-factor")
	r.add(engine.Alltoall, 0, "1-factor")
	r = append(r,
		AlgorithmRule{engine.Alltoall.String(), 0, t.Bruck, "Bruck, for parts that are small"},
		AlgorithmRule{engine.Alltoall.String(), t.BruckPart + 1, t.Bruck, "1-factor, for those that are not"})
	r.add(engine.Scan, 0, "recursive doubling")
	r.add(engine.Agree, 0, "vote, accept, commit")
	return r
}

type rules []AlgorithmRule

func (r *rules) add(k engine.Kind, from int, algorithm string) {
	*r = append(*r, AlgorithmRule{k.String(), from, 1, algorithm})
}

func (r *rules) addIf(applies bool, k engine.Kind, from int, algorithm string) {
	if applies {
		r.add(k, from, algorithm)
	}
}

// addBelow adds two levels below a length, and from there on the algorithms of one level
// that begin at their lengths.
func (r *rules) addBelow(levels int, k engine.Kind, flat ...AlgorithmRule) {
	r.addIf(levels > 0, k, 0, byLevels)
	for i, rule := range flat {
		last := i+1 == len(flat)
		if !last && flat[i+1].From <= levels {
			continue // it never applies
		}
		if from := max(rule.From, levels); from < engine.Never {
			r.add(k, from, rule.Algorithm)
		}
	}
}
