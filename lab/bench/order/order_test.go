package order

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Every system of this process is measured, and has received something.
func TestOrderIsMeasured(t *testing.T) {
	c := Config{
		Members: []int{3}, Sizes: []int{64}, Systems: []string{Broadcast, Order, Safe}, Messages: 20,
		Time: time.Second,
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	var results []Result
	for {
		var err error
		results, err = Run(t.Context(), c)
		if err != nil || len(results) != c.Steps() {
			t.Fatal(results, err)
		}
		// On a busy machine the slowest member may receive nothing within a second.
		idle := slices.ContainsFunc(results, func(r Result) bool { return r.Rate <= 0 })
		if !idle || c.Time >= 8*time.Second {
			break
		}
		c.Time *= 2
	}
	for _, r := range results {
		if r.P50 <= 0 || r.P99 < r.P50 || r.Rate <= 0 {
			t.Errorf("%+v", r)
		}
	}
	var table strings.Builder
	if err := WriteTable(&table, results); err != nil || strings.Count(table.String(), "\n") != 4 {
		t.Error(table.String(), err)
	}
}

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	good := Config{Members: []int{3}, Sizes: []int{64}, Systems: []string{Order}, Messages: 1, Time: time.Second}
	for name, change := range map[string]func(*Config){
		"--members":  func(c *Config) { c.Members = []int{1} },
		"--size":     func(c *Config) { c.Sizes = []int{0} },
		"--messages": func(c *Config) { c.Messages = 0 },
		"--time":     func(c *Config) { c.Time = 0 },
		"etcd":       func(c *Config) { c.Members, c.Systems = []int{16}, []string{Etcd} },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
