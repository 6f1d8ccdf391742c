package broadcast_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/topology"
)

// What makes no sense is refused, with a reason that names the parts.
func TestSenselessPlansAreRefused(t *testing.T) {
	eight, err := topology.New(topology.Binomial(), topology.Interleaved, 8, 0)
	if err != nil {
		t.Fatal(err)
	}
	tree, ack := broadcast.Tree{Tree: eight}, broadcast.AckTree{Tree: eight}
	gossip, rounds := broadcast.Gossip{Until: 9}, broadcast.GossipRounds{Limit: 3}
	checked := broadcast.Checked{}
	proof := broadcast.FailureProof{Failures: 1, Timeout: 9}
	const sync = broadcast.Synchronized

	for _, c := range []struct {
		why    string
		config broadcast.Config
	}{
		{"takes 1 to", broadcast.Config{Size: 0, Dissemination: tree}},
		{"the root must be", broadcast.Config{Size: 8, Root: 8, Dissemination: tree}},
		{"the root must be", broadcast.Config{Size: 8, Root: -1, Dissemination: tree}},
		{"no dissemination", broadcast.Config{Size: 8, Correction: checked}},
		{"correction at -1", broadcast.Config{Size: 8, Dissemination: tree, Correction: checked, Start: sync, At: -1}},
		{"only a synchronized", broadcast.Config{Size: 8, Dissemination: tree, Correction: checked, At: 5}},

		{"needs a tree", broadcast.Config{Size: 8, Dissemination: broadcast.Tree{}}},
		{"needs a tree", broadcast.Config{Size: 8, Dissemination: broadcast.AckTree{}}},
		{"spans 8 processes", broadcast.Config{Size: 9, Dissemination: tree}},
		{"from root 0", broadcast.Config{Size: 8, Root: 1, Dissemination: tree}},
		{"from root 0", broadcast.Config{Size: 8, Root: 1, Dissemination: ack}},
		{"acknowledgments with checked", broadcast.Config{Size: 8, Dissemination: ack, Correction: checked}},
		{"already redundant", broadcast.Config{Size: 8, Dissemination: broadcast.BinomialGraph{}, Correction: checked}},
		{"already restarts", broadcast.Config{Size: 8, Dissemination: broadcast.Restarting{}, Correction: checked}},

		{"reaches no process", broadcast.Config{Size: 8, Dissemination: broadcast.Gossip{}}},
		{"stops everywhere at once", broadcast.Config{Size: 8, Dissemination: gossip, Correction: checked}},
		{"before gossip ends", broadcast.Config{Size: 8, Dissemination: gossip, Correction: checked, Start: sync, At: 8}},
		{"reaches no process", broadcast.Config{Size: 8, Dissemination: broadcast.GossipRounds{}}},
		{"overlapped start", broadcast.Config{Size: 8, Dissemination: rounds, Correction: checked, Start: sync, At: 9}},

		{"cannot take -1", broadcast.Config{
			Size: 8, Dissemination: tree, Correction: broadcast.Checked{Throttle: -1},
			Start: sync,
		}},
		{"common start", broadcast.Config{Size: 8, Dissemination: tree, Correction: broadcast.Checked{Throttle: 1}}},
		{"corrects nothing", broadcast.Config{Size: 8, Dissemination: tree, Correction: broadcast.Opportunistic{}}},
		{"corrects nothing", broadcast.Config{Size: 8, Dissemination: tree, Correction: broadcast.Optimized{}}},
		{"corrects nothing", broadcast.Config{Size: 8, Dissemination: tree, Correction: broadcast.Safe{Distance: -2}}},
		{"against -1 failures", broadcast.Config{
			Size: 8, Dissemination: tree,
			Correction: broadcast.FailureProof{Failures: -1, Timeout: 9}, Start: sync,
		}},
		{"needs a timeout", broadcast.Config{
			Size: 8, Dissemination: tree, Correction: broadcast.FailureProof{Failures: 1},
			Start: sync,
		}},
		{"synchronized one", broadcast.Config{Size: 8, Dissemination: tree, Correction: proof}},
		{"on a line", broadcast.Config{Size: 8, Dissemination: tree, Correction: proof, Start: sync, Line: true}},
		{"in the past", broadcast.Config{Size: 8, Dissemination: tree, Correction: broadcast.Delayed{Delay: -1}}},
		{"must take part", broadcast.Config{
			Size: 8, Dissemination: tree, Correction: broadcast.Delayed{},
			EarlyOnlyRelay: true,
		}},
		{"on a line", broadcast.Config{Size: 8, Dissemination: tree, Correction: broadcast.Delayed{}, Line: true}},
	} {
		_, err := broadcast.NewPlan(c.config)
		switch {
		case !errors.Is(err, broadcast.ErrPlan):
			t.Errorf("%+v: want a refusal because %q, got %v", c.config, c.why, err)
		case !strings.Contains(err.Error(), c.why):
			t.Errorf("%+v: want a refusal because %q, got: %v", c.config, c.why, err)
		}
	}
}
