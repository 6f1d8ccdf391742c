package scale

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// small is a config that is quick to measure. A fifth of its members is one.
func small(transport string) Config {
	return Config{
		Members: []int{8}, Transport: transport, Kills: []Kills{{1, false}, {20, true}, {2, false}},
		Time: 600 * time.Millisecond, Size: 64, Seed: 1,
	}
}

func TestRun(t *testing.T) {
	for _, transport := range Transports {
		t.Run(transport, func(t *testing.T) {
			c := small(transport)
			last := 0
			c.Progress = func(done int, _ string) { last = done }
			results, err := Run(t.Context(), c)
			if err != nil || len(results) != 2 || last != c.Steps() {
				t.Fatalf("%d of %d steps, %+v, %v", last, c.Steps(), results, err)
			}
			for i, r := range results {
				checkResult(t, transport, i+1, r)
			}
		})
	}
}

func checkResult(t *testing.T, transport string, dead int, r Result) {
	t.Helper()
	if r.Members != 8 || r.Transport != transport || r.Kills != dead || r.Evicted != 0 {
		t.Errorf("%+v", r)
	}
	if r.HeapKB <= 0 || r.Goroutines < 1 || r.Connections < 2 || r.Connections > 14 || r.IdleFrames <= 0 {
		t.Errorf("at rest: %+v", r)
	}
	if r.Broadcasts < 1 || r.BroadcastsComplete < 1 || r.BroadcastP50 <= 0 || r.BroadcastP99 < r.BroadcastP50 ||
		r.BareP50 <= 0 {
		t.Errorf("broadcasts: %+v", r)
	}
	// Each member but the root gets the message once, at least.
	if r.Messages < 0.8 || r.CPU <= 0 {
		t.Errorf("a broadcast's cost: %+v", r)
	}
	if r.Complete < 1 || r.Complete > r.Rounds || r.ViewP50 <= 0 || r.ViewP99 < r.ViewP50 || r.Views < 1 ||
		r.ViewFrames <= 0 {
		t.Errorf("views: %+v", r)
	}
	if joined := transport == "tcp"; (r.Joined == 1) != joined || (r.JoinMS > 0) != joined || (r.JoinViews > 0) != joined {
		t.Errorf("joins: %+v", r)
	}
}

// What was measured before an interruption is returned.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := small("mem")
	c.Progress = func(done int, _ string) {
		if done == 5 { // the first kills
			cancel()
		}
	}
	results, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || len(results) < 1 || results[0].Complete < 1 {
		t.Errorf("%+v, %v", results, err)
	}
}

// A size beyond the limit of open files is left out, and what fits is named.
func TestLimitOfOpenFiles(t *testing.T) {
	c := small("tcp")
	c.Members = []int{maxMembers}
	if err := c.checkOpenFiles(maxMembers); err == nil {
		t.Skip("so many files may be open")
	}
	results, err := Run(t.Context(), c)
	if len(results) != 0 || err == nil || !strings.Contains(err.Error(), "--members 16384: about ") ||
		!strings.Contains(err.Error(), " fit") {
		t.Errorf("%+v, %v", results, err)
	}
	c.Transport = "mem"
	if err := c.checkOpenFiles(maxMembers); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	if c := small("tcp"); c.Check() != nil {
		t.Error(c.Check())
	}
	for about, change := range map[string]func(*Config){
		"--members: write":     func(c *Config) { c.Members = nil },
		"--members 3:":         func(c *Config) { c.Members = []int{3} },
		"--members: 8 is":      func(c *Config) { c.Members = []int{8, 8} },
		"--transport udp:":     func(c *Config) { c.Transport = "udp" },
		"--kills: write":       func(c *Config) { c.Kills = nil },
		"--kills 4: of 8":      func(c *Config) { c.Kills = []Kills{{4, false}} },
		"--kills 50%: of 8":    func(c *Config) { c.Kills = []Kills{{50, true}} },
		"--size 7:":            func(c *Config) { c.Size = 7 },
		"--time -1s: choose a": func(c *Config) { c.Time = -time.Second },
	} {
		c := small("tcp")
		change(&c)
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), about) {
			t.Errorf("%s %v", about, err)
		}
	}
}

func TestParseKills(t *testing.T) {
	kills, err := ParseKills("1,3,1%")
	if err != nil || len(kills) != 3 || kills[2].of(1024) != 10 || kills[2].of(64) != 1 || kills[1].of(64) != 3 {
		t.Errorf("%v, %v", kills, err)
	}
	for _, wrong := range []string{"", "0", "x", "1,%", "-1%"} {
		if kills, err := ParseKills(wrong); err == nil {
			t.Errorf("%q: %v", wrong, kills)
		}
	}
}

func TestChart(t *testing.T) {
	c := Chart([]Result{
		{Members: 8, Kills: 1, HeapKB: 20, ViewCPU: 100},
		{Members: 8, Kills: 2, HeapKB: 20, ViewCPU: 200},
		{Members: 64, Kills: 1, HeapKB: 30},
	})
	if len(c.Series) != 2 || len(c.Series[0].Points) != 2 || len(c.Series[1].Points) != 1 ||
		c.Series[1].Points[0].Y != 100 {
		t.Errorf("%+v", c.Series)
	}
	var b strings.Builder
	if err := c.SVG(&b); err != nil || !strings.Contains(b.String(), "heap [kB]") {
		t.Errorf("%.200s, %v", b.String(), err)
	}
}
