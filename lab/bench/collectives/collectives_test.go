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
	if got := c.Steps(); got != 2*(5*2+2) {
		t.Errorf("%d steps: a barrier and a split have no size", got)
	}
	for what, corrupt := range map[string]func(*Config){
		"--members 1":       func(c *Config) { c.Members = []int{1} },
		"--members 4":       func(c *Config) { c.Members = []int{4, 4} },
		"--sizes 9":         func(c *Config) { c.Sizes = []int{9} },
		"--sizes 0":         func(c *Config) { c.Sizes = []int{0} },
		"--operations scan": func(c *Config) { c.Operations = []string{"scan"} },
		"--rounds 0":        func(c *Config) { c.Rounds = 0 },
		"at least one ":     func(c *Config) { c.Sizes = nil },
	} {
		c := good()
		corrupt(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Ratios are of medians: to Open MPI's, and run-through's to plain's. The first round of a
// block counts apart.
func TestCollectiveRatios(t *testing.T) {
	of := func(system, mode string, micros ...int) *systemUnderTest {
		p := &systemUnderTest{system: system, mode: mode}
		m := measured{took: []time.Duration{5 * time.Millisecond}, processor: 400 * time.Microsecond}
		for _, us := range micros {
			m.took = append(m.took, time.Duration(us)*time.Microsecond)
		}
		p.add(m, 1)
		return p
	}
	results := summarize(testcase{"reduce", 8}, 4, []*systemUnderTest{
		of("pleach", modeRunThrough, 900, 30, 20),
		of(systemOpenMPI, "", 1, 20, 700),
		of(systemOpenMPIShared, "", 10, 10, 10),
		of("pleach", modeReport, 24, 24, 24),
	})
	want := []struct{ p50, ratio, ofShared, ofReport float64 }{
		{30, 1.5, 3, 1.25},
		{20, 0, 0, 0},
		{10, 0, 0, 0},
		{24, 1.2, 2.4, 0},
	}
	for i, r := range results {
		w := want[i]
		if r.P50 != w.p50 || r.Ratio != w.ratio || r.OfShared != w.ofShared || r.OfReport != w.ofReport || r.Rounds != 3 ||
			r.Size != 8 || r.Members != 4 || r.IdleP50 != 5000 || r.Processor != 100 {
			t.Errorf("%+v, want %+v", r, w)
		}
	}
	alone := summarize(testcase{"reduce", 8}, 4, []*systemUnderTest{of("pleach", modeRunThrough, 1)})
	if alone[0].Ratio != 0 || alone[0].OfShared != 0 || alone[0].OfReport != 0 {
		t.Errorf("a ratio to nobody: %+v", alone[0])
	}
}
