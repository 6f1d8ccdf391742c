package logp_test

import (
	"math"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Corrected Gossip's probability to miss anybody: "δ = 6.93·10^−7".
const miss = 6.93e-7

// Corrected Gossip §III-B: "Figure 3 shows that the approximation can predict the
// optimal gossip time, T = 24, rather reliably", §III-C: "T = 25 (for L = O =
// 1)", and Figure 7's table: T = 50 and latency 53 for gossip alone (N = 4096,
// L = 2, O = 1).
func TestGossipModelPredictsThePapersTimes(t *testing.T) {
	small := logp.GossipModel{Size: 1024, Live: 1024, L: 1, O: 1, Miss: miss}
	if c, err := small.BestOpportunistic(); err != nil || c.Time != 24 {
		t.Errorf("opportunistic: %+v %v", c, err)
	}
	// Eq. 4 has the same minimum at 24 and 26; the paper names 25.
	if c, err := small.BestChecked(); err != nil || c.Time < 24 || c.Time > 26 {
		t.Errorf("checked: %+v %v", c, err)
	}
	large := logp.GossipModel{Size: 4096, Live: 4096, L: 2, O: 1, Miss: miss}
	if c, err := large.BestPlain(); err != nil || c.Time != 50 || c.Latency != 53 {
		t.Errorf("plain: %+v %v", c, err)
	}
	if _, err := (logp.GossipModel{Size: 1, Live: 1, O: 1, Miss: miss}).BestChecked(); err == nil {
		t.Error("a model of one process is taken")
	}
}

// With latencies of many overheads, a T after which few processes are colored is not good,
// although sending to thousands would take no longer than a message: the longest gap is
// no shorter than the mean.
func TestGossipTimeOnLongLinks(t *testing.T) {
	for _, size := range []protocol.Rank{1 << 14, 1 << 20} {
		g := logp.GossipModel{Size: size, Live: size, L: 4000, O: 1, Miss: miss}
		for name, best := range map[string]func() (logp.Choice, error){
			"opportunistic": g.BestOpportunistic, "checked": g.BestChecked,
			"paced": func() (logp.Choice, error) { return g.BestPaced(2 * (g.L + 2*g.O)) },
		} {
			c, err := best()
			if err != nil {
				t.Fatal(err)
			}
			colored := g.ColoredAfter(int(c.Time + g.L + g.O))
			if mean := float64(size)/colored[len(colored)-1] - 1; float64(c.Gap) < mean {
				t.Errorf("%d processes, %s: %+v leaves gaps of %g on average", size, name, c, mean)
			}
			if name == "paced" && c.Gap > 1 {
				t.Errorf("%d processes: paced correction waits in gaps of %d", size, c.Gap)
			}
		}
	}
}

// Corrected Gossip's Figure 7 has T = 37 for FCG on 4,096 nodes, with one O added
// to what Eq. 5 says. Eq. 5 must not fall for a T that colors nobody: where few
// are colored there is likely no chain of five at all, which is no short one.
func TestFailureProofTime(t *testing.T) {
	for _, miss := range []float64{0.5, 0.1, 0.01, 1e-3, 1e-6} {
		for _, size := range []protocol.Rank{64, 4096, 1 << 20, 1 << 30} {
			g := logp.GossipModel{Size: size, Live: size, L: 2, O: 1, Miss: miss}
			c, err := g.BestFailureProof()
			least, _ := g.BestOpportunistic()
			if err != nil || c.Time < least.Time || c.Time > least.Time+20 {
				t.Errorf("%d processes, δ = %g: %+v, %v; opportunistic %+v", size, miss, c, err, least)
			}
			if size == 4096 && miss == 1e-3 && c.Time != 36 {
				t.Errorf("T = %d, want 36", c.Time)
			}
		}
	}
}

// With one process colored the gap is the rest of the ring, and nobody finds four
// others; with all colored there is no gap, and a chain is as short as it gets.
func TestLongestRunsOfFewAndOfAll(t *testing.T) {
	for _, miss := range []float64{0.5, 0.01, 1e-6} {
		g := logp.GossipModel{Size: 1000, Live: 1000, L: 2, O: 1, Miss: miss}
		if gap, chain := g.Gap(1), g.Chain(1, 5); gap < 500 || chain != 1000 {
			t.Errorf("δ = %g, one colored: gap %d, chain %d", miss, gap, chain)
		}
		if gap, chain := g.Gap(999.999), g.Chain(999.999, 5); gap > 2 || chain > 7 {
			t.Errorf("δ = %g, all colored: gap %d, chain %d", miss, gap, chain)
		}
	}
}

// Corrected Gossip, Lemma 1: the expected number of colored processes. The mean
// of simulated runs must follow it.
func TestColoredAfterFollowsSimulation(t *testing.T) {
	const size, until, runs = 1024, 18, 60
	model := logp.GossipModel{Size: size, Live: size, L: 1, O: 1, Miss: miss}
	want := model.ColoredAfter(until + 3)
	plan, err := broadcast.NewPlan(broadcast.Config{Size: size, Dissemination: broadcast.Gossip{Until: until, Hop: 3}})
	if err != nil {
		t.Fatal(err)
	}
	sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: 1, O: 1, FreeReceive: true})
	if err != nil {
		t.Fatal(err)
	}
	var colored float64
	group := plan.Group()
	for seed := range uint64(runs) {
		r, err := sim.Run(group.Machines(seed), logp.Faults{})
		if err != nil {
			t.Fatal(err)
		}
		colored += float64(size-r.Unreached) / runs
	}
	if end := want[until+2]; math.Abs(colored-end) > 0.05*end {
		t.Errorf("%.0f processes are colored, the model says %.0f", colored, end)
	}
}

// flogsim's gossip starts correction at T exactly. Its means at P = 65,536 over
// many seeds: quiescence and messages per process by T.
func TestAgreesWithFlogsimOnGossip(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("long, and shares nothing")
	}
	for _, c := range []struct {
		until                protocol.Time
		quiescence, messages float64
	}{{36, 59.7, 6.0}, {38, 55.7, 7.9}, {40, 58.1, 10.2}, {46, 70.8, 17.3}} {
		const size, runs = 65536, 6
		plan, err := broadcast.NewPlan(broadcast.Config{
			Size: size, Dissemination: broadcast.Gossip{Until: c.until},
			Correction: broadcast.Checked{}, Start: broadcast.Synchronized, At: c.until,
		})
		if err != nil {
			t.Fatal(err)
		}
		sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: 2, O: 1})
		if err != nil {
			t.Fatal(err)
		}
		var quiescence, messages float64
		group := plan.Group()
		for seed := range uint64(runs) {
			r, err := sim.Run(group.Machines(seed), logp.Faults{})
			if err != nil {
				t.Fatal(err)
			}
			quiescence += float64(r.Quiescence) / runs
			messages += float64(r.Total()) / size / runs
		}
		if math.Abs(quiescence-c.quiescence) > 1.5 || math.Abs(messages-c.messages) > 0.06 {
			t.Errorf("T=%d: quiescence %.1f, %.2f messages; flogsim %.1f, %.1f", c.until, quiescence, messages, c.quiescence,
				c.messages)
		}
	}
}
