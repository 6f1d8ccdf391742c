package tune

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/topology"
)

func ask(t *testing.T, q Question) *Answer {
	t.Helper()
	a, err := Tune(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Checked corrections never miss, and whatever meets the wish has not missed
// more often than wished.
func TestOptionsMeetTheWish(t *testing.T) {
	q := Question{Size: 512, Dead: 10, L: 2, O: 1, Reliability: 0.99, Runs: 300, Seed: 1}
	a := ask(t, q)
	if a.Fastest < 0 || a.Leanest < 0 {
		t.Fatalf("nothing is best: %+v", a)
	}
	for i, o := range a.Options {
		sure := o.Correction == "checked" || strings.HasPrefix(o.Correction, "failure-proof")
		if sure && (o.Miss != 0 || o.Missed != 0 || !o.Meets) {
			t.Errorf("%s: %+v", o.Name(), o)
		}
		if o.Meets && float64(o.Missed) > 0.01*float64(o.Runs) {
			t.Errorf("%s missed in %d of %d runs", o.Name(), o.Missed, o.Runs)
		}
		if o.Meets && (o.Latency < a.Options[a.Fastest].Latency || o.Messages < a.Options[a.Leanest].Messages) {
			t.Errorf("option %d is better than the best", i)
		}
		if tree := o.Broadcast != "gossip"; tree && o.P99 > float64(o.Bound) && strings.HasPrefix(o.Correction, "safe") {
			t.Errorf("%s takes %g, above its bound %d", o.Name(), o.P99, o.Bound)
		}
	}
}

// More dead and more reliability need corrections that reach further.
func TestDistanceGrows(t *testing.T) {
	distance := func(dead int, reliability float64) string {
		q := Question{Size: 4096, Dead: dead, L: 2, O: 1, Reliability: reliability, Seed: 1}
		options, err := q.treeOptions(topology.Binomial())
		if err != nil {
			t.Fatal(err)
		}
		return options[1].Correction
	}
	few, many, sure := distance(4, 0.99), distance(160, 0.99), distance(160, 0.999999)
	if !(few < many && many < sure) || len(sure) != len("safe:0") {
		t.Errorf("%s, %s, %s", few, many, sure)
	}
}

// Eq. 2 turned around: the probability of a longer gap than the one it names is
// below what it was asked for, and of one shorter by one it is not.
func TestLongerAgreesWithTheModel(t *testing.T) {
	q := Question{Size: 1024, L: 1, O: 1, Reliability: 0.9999}
	for _, colored := range []float64{500, 800, 1000} {
		gap := q.model().Gap(colored)
		if at, before := q.longer(colored, gap), q.longer(colored, gap-1); at >= 1e-4 || before < 1e-4 {
			t.Errorf("%g colored: gap %d, longer ones %g, as long %g", colored, gap, at, before)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Question{Size: 8, Dead: 1, L: 2, O: 1, Reliability: 0.9}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]func(*Question){
		"size":        func(q *Question) { q.Size = 2 },
		"dead":        func(q *Question) { q.Dead = 7 },
		"overhead":    func(q *Question) { q.O = 0 },
		"reliability": func(q *Question) { q.Reliability = 1 },
	} {
		q := good
		bad(&q)
		if q.Check() == nil {
			t.Errorf("a wrong %s is taken", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Tune(ctx, good, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestChart(t *testing.T) {
	a := ask(t, Question{Size: 64, Dead: 1, L: 2, O: 1, Reliability: 0.9, Runs: 20, Seed: 1})
	var svg bytes.Buffer
	if err := a.Chart("trade-off").SVG(&svg); err != nil || !strings.Contains(svg.String(), "optimal, checked") {
		t.Errorf("%v", err)
	}
}
