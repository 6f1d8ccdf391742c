//go:build unix

package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/agent/cli/clitest"
	"github.com/pleach-go/pleach/lab/bench/sort"
)

// A process is killed in each phase, and the output is always the same.
func TestBenchSort(t *testing.T) {
	out := clitest.Printed(t, newBenchSort(), "--records", "20000", "--members", "3", "--trials", "1")
	for _, line := range []string{
		`^20000 records of 100 bytes, 3 processes, 1 trial: \d+ ms, \d+ ms of processor time$`,
		`^killed in phase +run-through +restart +ratio +equal$`,
		`^sample +-?\d+ ms +-?\d+ ms +\S+ +true$`, `^exchange .* true$`, `^sort .* true$`, `^write .* true$`,
	} {
		if !regexp.MustCompile(`(?m)` + line).MatchString(out) {
			t.Errorf("%s is not in\n%s", line, out)
		}
	}
}

// The output is that of GNU sort.
func TestBenchSortBesideGNU(t *testing.T) {
	c := sort.Config{Records: 1, Members: 2, Trials: 1, GNU: true}
	if err := c.Check(); err != nil {
		t.Skip(err)
	}
	var r sort.Result
	text := clitest.Printed(t, newBenchSort(), "--records", "20000", "--members", "2", "--trials", "1", "--compare", "gnu",
		"--json")
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Trials != 1 || r.OfGNU <= 0 || len(r.Killed) != 4 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestBenchSortRefuses(t *testing.T) {
	for flag, want := range map[string]string{
		"--members=1": "choose a number between 2", "--records=0": "choose a number", "--trials=0": "choose a number",
		"--compare=bsd": "choose gnu",
	} {
		cmd := newBenchSort()
		cmd.SetArgs([]string{flag})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
