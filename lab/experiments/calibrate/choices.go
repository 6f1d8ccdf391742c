package calibrate

import (
	"time"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/collective/loggp"
)

// Link returns what was measured as a program sets it. Where the messages of a burst take
// more than half a hop, they show LogP's gap g, and o is at most half a hop.
func (n *Network) Link() collective.Link {
	o := min(n.Overhead.Median, n.Hop.Median/2)
	return collective.Link{Latency: n.Hop.Median - 2*o, Overhead: o, Bandwidth: n.Bandwidth}
}

// Choice is the algorithm that a collective call uses, and what the LogGP model predicts.
type Choice struct {
	Collective string        `json:"collective"`
	Bytes      int           `json:"bytes"`
	Algorithm  string        `json:"algorithm"`
	Predicted  time.Duration `json:"predicted_ns"`
	// OneLevel is the prediction for the best algorithm that knows nothing of hosts.
	OneLevel time.Duration `json:"one_level_ns"`
}

// choiceBytes are the lengths that are shown.
var choiceBytes = []int{8, 1 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20}

// Choices returns what calls choose in a job of tasks that are spread evenly over hosts.
func Choices(n collective.Network, tasks, hosts int) (choices []Choice) {
	m := loggp.Model{
		Network: loggp.Network{Inside: loggp.Link(n.Inside), Between: loggp.Link(n.Between)}.WithDefaults(),
		Layout:  loggp.Even(tasks, hosts),
	}
	t, rules := engine.ThresholdsOf(m), n.Algorithms(tasks, hosts)
	add := func(k engine.Kind, bytes int, oneLevel, predicted time.Duration) {
		c := Choice{Collective: k.String(), Bytes: bytes, Predicted: predicted, OneLevel: oneLevel}
		for _, r := range rules {
			if r.Collective == c.Collective && r.From <= bytes && r.Tasks <= tasks {
				c.Algorithm = r.Algorithm
			}
		}
		choices = append(choices, c)
	}
	add(engine.Barrier, 0, m.Barrier(), either(t.Levels.Barrier, m.BarrierByLevels(), m.Barrier()))
	for _, b := range choiceBytes {
		flat := either(b > t.Tree, m.Chain(b, t.Segment), m.Tree(b))
		add(engine.Broadcast, b, flat, either(t.Levels.Broadcast && b <= t.Tree, m.TreeByLevels(b), flat))
	}
	for _, b := range choiceBytes {
		flat := either(b >= t.Chain, m.ReduceChain(b, t.Segment), m.ReduceTree(b))
		add(engine.Reduce, b, flat, either(b < t.Levels.Reduce, m.ReduceByLevels(b), flat))
	}
	for _, b := range choiceBytes {
		flat := either(b >= t.Halving, m.Halving(b), m.Doubling(b))
		add(engine.Allreduce, b, flat, either(b < t.Levels.Allreduce, m.AllreduceByLevels(b), flat))
	}
	return choices
}

func either(first bool, a, b time.Duration) time.Duration {
	if first {
		return a
	}
	return b
}
