package tune

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// model is Corrected Gossip's, with the wanted reliability.
func (q *Question) model() logp.GossipModel {
	return logp.GossipModel{Size: q.Size, Live: q.Size - protocol.Rank(q.Dead), L: q.L, O: q.O, Miss: 1 - q.Reliability}
}

// options are all that are compared: every tree, and gossip, each with the
// corrections that suit it.
func (q *Question) options() ([]Option, error) {
	var all []Option
	for _, shape := range experiments.Table1Shapes(q.L, q.O) {
		some, err := q.treeOptions(shape)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	some, err := q.gossipOptions()
	return append(all, some...), err
}

// treeOptions are a tree with checked correction, and with one that only tries:
// up to a distance at which the longest gap to expect is closed from both sides.
//
// Eq. 2 is about ranks that are colored independently of each other. After
// gossip they are; after an interleaved tree with random dead nearly so, as
// neighbors on the ring have few ancestors in common.
func (q *Question) treeOptions(shape topology.Shape) ([]Option, error) {
	tree, err := topology.New(shape, topology.Interleaved, q.Size, 0)
	if err != nil {
		return nil, err
	}
	colored := q.coloredByTree(tree)
	gap := q.model().Gap(colored)
	finish := experiments.FinishTime(tree, q.L, q.O)
	_, checked := logp.CheckedBounds(gap, q.L, q.O)
	scenario := experiments.Scenario{Dissemination: "tree", Shape: shape}
	distance := max((gap+1)/2, 1)
	return []Option{
		{Broadcast: shape.String(), Correction: "checked", Bound: finish + checked, scenario: scenario},
		{
			Broadcast: shape.String(), Correction: fmt.Sprintf("safe:%d", distance), Bound: finish + q.tries(distance),
			Miss: q.longer(colored, 2*distance), scenario: scenario, colored: colored,
		},
	}, nil
}

// tries is how long it takes to send so far to both sides and be heard.
func (q *Question) tries(distance protocol.Rank) protocol.Time {
	return (2*protocol.Time(distance)-1)*q.O + 2*q.O + q.L
}

// further makes a correction that only tries reach one further, if it may.
func (o *Option) further(q *Question) bool {
	for _, rule := range []string{"safe", "opportunistic"} {
		var distance protocol.Rank
		if n, _ := fmt.Sscanf(o.Correction, rule+":%d", &distance); n == 1 && distance < farthest {
			o.Correction = fmt.Sprintf("%s:%d", rule, distance+1)
			o.scenario.Correction = o.Correction
			o.Bound += 2 * q.O
			o.Miss = q.longer(o.colored, 2*(distance+1))
			return true
		}
	}
	return false
}

// gossipOptions are gossip with T by Eqs. 3 to 5, and without correction.
func (q *Question) gossipOptions() ([]Option, error) {
	model := q.model()
	plain, err := model.BestPlain()
	if err != nil {
		return nil, err
	}
	tries, err := model.BestOpportunistic()
	if err != nil {
		return nil, err
	}
	checked, err := model.BestChecked()
	if err != nil {
		return nil, err
	}
	proof, err := model.BestFailureProof()
	if err != nil {
		return nil, err
	}
	after := int((q.L + q.O) / q.O)
	colored := model.ColoredAfter(int(max(plain.Time, tries.Time)/q.O) + after)
	distance := max((tries.Gap+1)/2, 1)
	gossip := func(c logp.Choice, correction string, miss float64) Option {
		return Option{
			Broadcast: "gossip", Correction: correction, GossipTime: c.Time, Bound: c.Latency, Miss: miss,
			colored:  colored[min(int(c.Time/q.O)+after, len(colored)-1)],
			scenario: experiments.Scenario{Dissemination: "gossip", GossipTime: c.Time, Drain: -1},
		}
	}
	return []Option{
		gossip(checked, "checked", 0),
		gossip(tries, fmt.Sprintf("opportunistic:%d", distance), q.longer(colored[int(tries.Time/q.O)+after], 2*distance)),
		gossip(proof, "failure-proof:1", 0),
		gossip(plain, "none", float64(model.Live)-colored[int(plain.Time/q.O)+after]),
	}, nil
}

// longer is the probability that some gap is longer than given, when so many are
// colored (Eq. 2).
func (q *Question) longer(colored float64, gap protocol.Rank) float64 {
	n := float64(q.Size)
	none := 0.0 // log of the probability that there is none
	for k := float64(gap) + 1; k < n; k++ {
		p := math.Exp(2*math.Log(colored/n) + k*math.Log1p(-colored/n))
		none += n * math.Log1p(-p)
		if n*p < 1e-15 {
			break
		}
	}
	return -math.Expm1(none)
}

// depthSamples is how many ranks say how deep a tree is.
const depthSamples = 1 << 14

// coloredByTree is how many ranks a tree colors on average: those that are alive
// with all their ancestors. The depth of many ranks is that of all.
func (q *Question) coloredByTree(tree topology.Tree) float64 {
	alive := 1 - float64(q.Dead)/float64(q.Size-1)
	rng := rand.New(rand.NewPCG(q.Seed, 0xdeb7))
	var sum float64
	for range depthSamples {
		rank := protocol.Rank(rng.Int64N(int64(q.Size)))
		sum += math.Pow(alive, float64(tree.Depth(rank)))
	}
	return sum / depthSamples * float64(q.Size)
}
