package logp

import (
	"fmt"
	"math"

	"github.com/pleach-go/pleach/protocol"
)

// GossipModel is Corrected Gossip's analysis of gossip until a time T followed
// by correction: how many processes are colored, how long the longest gap is
// likely to be, and so which T is best.
type GossipModel struct {
	// Size is N, Live is n.
	Size, Live protocol.Rank
	L, O       protocol.Time
	// Miss is δ, the probability of a longer gap than accounted for.
	Miss float64
}

// Choice is the best T for a correction, with what the model says of it.
type Choice struct {
	// Time is T.
	Time protocol.Time
	// Latency is the model's bound on the time until all is over.
	Latency protocol.Time
	// Gap is the longest gap to expect, K̄ (for failure-proof correction the
	// longest chain, Ḡ).
	Gap protocol.Rank
}

// maxGossipTime bounds the search for T, in multiples of o, beyond some latencies: what
// was sent first has to arrive before it can be passed on.
const (
	maxGossipTime = 4096
	maxLatencies  = 4
)

// horizon is the bound for a network.
func (g GossipModel) horizon() int {
	return maxGossipTime + maxLatencies*int(g.L/g.O)
}

// ColoredAfter returns c(t) for t = 0, o, 2o, …, steps·o: the expected number of
// colored processes (Lemma 1, Eq. 1).
func (g GossipModel) ColoredAfter(steps int) []float64 {
	delay := int((g.L + g.O) / g.O)
	colored := make([]float64, steps+1)
	colored[0] = 1
	for t := range steps {
		var senders float64
		if t >= delay {
			senders = colored[t-delay]
		}
		missed := math.Exp(senders * math.Log1p(-1/float64(g.Size-1)))
		colored[t+1] = colored[t] + (float64(g.Live)-colored[t])*(1-missed)
	}
	return colored
}

// Gap returns K̄: the longest gap that is exceeded with probability less than δ
// when c processes are colored (Eq. 2 and Claim 2).
func (g GossipModel) Gap(c float64) protocol.Rank {
	return g.longest(0, func(k float64) float64 {
		n := float64(g.Size)
		return 2*math.Log(c/n) + k*math.Log1p(-c/n)
	})
}

// Chain returns Ḡ: the longest run of ranks with v colored ones in it, exceeded
// with probability less than δ (Appendix B).
func (g GossipModel) Chain(c float64, v int) protocol.Rank {
	return g.longest(protocol.Rank(v), func(length float64) float64 {
		n, v := float64(g.Size), float64(v)
		choose := lgamma(length-1) - lgamma(v-1) - lgamma(length-v+1)
		return v*math.Log(c/n) + (length-v)*math.Log1p(-c/n) + choose
	})
}

// longest returns the smallest length, from the given one on, that is exceeded
// with probability less than δ, when logp gives the logarithm of the
// probability that a run of some length begins at a given rank.
//
// Lengths beyond the ring count too. They are the runs that a ring has no end
// for: of so few colored processes that there is no chain of five, say. A
// process that waits for the end of such a run goes all around, and so it does
// in the model if the run is too long to search for.
func (g GossipModel) longest(from protocol.Rank, logp func(length float64) float64) protocol.Rank {
	// The product over all greater lengths of (1−p)^N falls as lengths do, so
	// go down from where the rest is negligible.
	negligible := g.Miss * 1e-6
	if g.rest(maxLength, logp) > negligible {
		return g.Size
	}
	top := from + 1
	for g.rest(top, logp) > negligible {
		top++
	}
	none := 0.0 // log of the probability that no run is longer
	for k := top; k > from; k-- {
		none += float64(g.Size) * math.Log1p(-math.Exp(logp(float64(k))))
		if -math.Expm1(none) >= g.Miss {
			return min(k, g.Size)
		}
	}
	return from
}

// maxLength bounds the search for the longest run.
const maxLength = 1 << 12

// rest bounds the expected number of runs longer than given. Each length is less
// likely than the one before by a factor that only falls, once it does.
func (g GossipModel) rest(length protocol.Rank, logp func(length float64) float64) float64 {
	p := logp(float64(length))
	falls := math.Exp(logp(float64(length)+1) - p)
	if falls >= 1 {
		return math.Inf(1)
	}
	return float64(g.Size) * math.Exp(p) * falls / (1 - falls)
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// BestPlain returns the shortest T after which gossip alone has colored all with
// probability 1 − δ (§III-A).
func (g GossipModel) BestPlain() (Choice, error) {
	for t, c := range g.ColoredAfter(g.horizon()) {
		end := protocol.Time(t) * g.O
		if float64(g.Live)-c <= g.Miss && end > g.L+g.O {
			return Choice{Time: end - g.L - g.O, Latency: end}, nil
		}
	}
	return Choice{}, fmt.Errorf("logp: gossip does not color %d of %d processes by time %d", g.Live, g.Size,
		protocol.Time(g.horizon())*g.O)
}

// BestOpportunistic returns T by Eq. 3; its Gap is how far correction must
// reach.
func (g GossipModel) BestOpportunistic() (Choice, error) {
	return g.best(func(c float64) (gap protocol.Rank, correction protocol.Time) {
		gap = g.Gap(c)
		return gap, 2*g.L + (2+protocol.Time(gap))*g.O
	})
}

// BestChecked returns T by Eq. 4.
func (g GossipModel) BestChecked() (Choice, error) {
	return g.best(func(c float64) (gap protocol.Rank, correction protocol.Time) {
		gap = g.Gap(c)
		return gap, 2*g.L + (2+2*protocol.Time(gap))*g.O
	})
}

// BestPaced returns T for correction that waits for so long before each message to the
// right, as Delayed of package broadcast does if paced. The message to the left, which does
// not wait, closes a gap of one process, and each further process of a gap costs the wait.
func (g GossipModel) BestPaced(wait protocol.Time) (Choice, error) {
	return g.best(func(c float64) (gap protocol.Rank, correction protocol.Time) {
		gap = g.Gap(c)
		return gap, 2*g.L + 2*g.O + protocol.Time(max(gap-1, 0))*wait
	})
}

// BestFailureProof returns T by Eq. 5, which holds for f = 1.
func (g GossipModel) BestFailureProof() (Choice, error) {
	return g.best(func(c float64) (chain protocol.Rank, correction protocol.Time) {
		chain = g.Chain(c, 5)
		return chain, 4*protocol.Time(chain)*g.O + g.L - 13*g.O
	})
}

// best minimizes T + correction over T. Of several, it takes the largest, which
// withstands the largest reduction in δ.
func (g GossipModel) best(correct func(colored float64) (protocol.Rank, protocol.Time)) (Choice, error) {
	if g.Size < 3 || g.Live < 2 || g.Live > g.Size || g.O < 1 || g.L < 0 || g.Miss <= 0 || g.Miss >= 1 {
		return Choice{}, fmt.Errorf("logp: no gossip model for %+v", g)
	}
	after := int((g.L + g.O) / g.O)
	colored := g.ColoredAfter(g.horizon() + after)
	best := Choice{Latency: protocol.Never}
	for t := 1; t <= g.horizon(); t++ {
		now := protocol.Time(t) * g.O
		if now > best.Latency {
			break
		}
		if gap, correction := correct(colored[t+after]); now+correction <= best.Latency {
			best = Choice{Time: now, Latency: now + correction, Gap: gap}
		}
	}
	return best, nil
}
