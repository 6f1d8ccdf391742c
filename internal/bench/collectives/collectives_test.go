package collectives

import (
	"strings"
	"testing"
	"time"
)

func TestCollectivesCheck(t *testing.T) {
	good := func() Config {
		return Config{Members: []int{2, 4}, Sizes: []int{8, 64}, Operations: Operations(), Rounds: 10}
	}
	c := good()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if got := c.Steps(); got != 2*(4*2+1) {
		t.Errorf("%d steps: a barrier has no size", got)
	}
	for what, corrupt := range map[string]func(*Config){
		"--members 1":   func(c *Config) { c.Members = []int{1} },
		"--members 4":   func(c *Config) { c.Members = []int{4, 4} },
		"--sizes 9":     func(c *Config) { c.Sizes = []int{9} },
		"--sizes 0":     func(c *Config) { c.Sizes = []int{0} },
		"--ops scan":    func(c *Config) { c.Operations = []string{"scan"} },
		"--rounds 0":    func(c *Config) { c.Rounds = 0 },
		"at least one ": func(c *Config) { c.Sizes = nil },
	} {
		c := good()
		corrupt(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Ratios are of medians: to Open MPI's, and run-through's to plain's.
func TestCollectiveRatios(t *testing.T) {
	of := func(system, mode string, micros ...int) *systemUnderTest {
		p := &systemUnderTest{system: system, mode: mode}
		for _, m := range micros {
			p.took = append(p.took, time.Duration(m)*time.Microsecond)
		}
		return p
	}
	results := summarize(testcase{"reduce", 8}, 4, []*systemUnderTest{
		of("pleach", modeRunThrough, 900, 30, 20),
		of(systemOpenMPI, "", 1, 20, 700),
		of("pleach", modeReport, 24, 24, 24),
	})
	want := []struct{ p50, ratio, ofReport float64 }{{30, 1.5, 1.25}, {20, 0, 0}, {24, 1.2, 0}}
	for i, r := range results {
		if r.P50 != want[i].p50 || r.Ratio != want[i].ratio || r.OfReport != want[i].ofReport || r.Rounds != 3 || r.Size != 8 || r.Members != 4 {
			t.Errorf("%+v, want %+v", r, want[i])
		}
	}
	alone := summarize(testcase{"reduce", 8}, 4, []*systemUnderTest{of("pleach", modeRunThrough, 1)})
	if alone[0].Ratio != 0 || alone[0].OfReport != 0 {
		t.Errorf("a ratio to nobody: %+v", alone[0])
	}
}
