package bench

import (
	"strings"
	"testing"
	"time"
)

func TestCollectivesCheck(t *testing.T) {
	good := func() Collectives {
		return Collectives{Members: []int{2, 4}, Sizes: []int{8, 64}, Operations: CollectiveOperations(), Rounds: 10}
	}
	c := good()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if got := c.Steps(); got != 2*(4*2+1) {
		t.Errorf("%d steps: a barrier has no size", got)
	}
	for what, spoil := range map[string]func(*Collectives){
		"--members 1":   func(c *Collectives) { c.Members = []int{1} },
		"--members 4":   func(c *Collectives) { c.Members = []int{4, 4} },
		"--sizes 9":     func(c *Collectives) { c.Sizes = []int{9} },
		"--sizes 0":     func(c *Collectives) { c.Sizes = []int{0} },
		"--ops scan":    func(c *Collectives) { c.Operations = []string{"scan"} },
		"--rounds 0":    func(c *Collectives) { c.Rounds = 0 },
		"at least one ": func(c *Collectives) { c.Sizes = nil },
	} {
		c := good()
		spoil(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Ratios are of medians: to Open MPI's, and run-through's to plain's.
func TestCollectiveRatios(t *testing.T) {
	of := func(system, strength string, micros ...int) *player {
		p := &player{system: system, strength: strength}
		for _, m := range micros {
			p.took = append(p.took, time.Duration(m)*time.Microsecond)
		}
		return p
	}
	results := collectiveResults(matter{"reduce", 8}, 4, []*player{
		of("pleach", strengthRunThrough, 900, 30, 20),
		of(systemOpenMPI, "", 1, 20, 700),
		of("pleach", strengthPlain, 24, 24, 24),
	})
	want := []struct{ p50, ratio, ofPlain float64 }{{30, 1.5, 1.25}, {20, 0, 0}, {24, 1.2, 0}}
	for i, r := range results {
		if r.P50 != want[i].p50 || r.Ratio != want[i].ratio || r.OfPlain != want[i].ofPlain || r.Rounds != 3 || r.Size != 8 || r.Members != 4 {
			t.Errorf("%+v, want %+v", r, want[i])
		}
	}
	alone := collectiveResults(matter{"reduce", 8}, 4, []*player{of("pleach", strengthRunThrough, 1)})
	if alone[0].Ratio != 0 || alone[0].OfPlain != 0 {
		t.Errorf("a ratio to nobody: %+v", alone[0])
	}
}
