//go:build unix

package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/agent/cli/clitest"
	"github.com/pleach-go/pleach/lab/bench/restart"
)

// Every way ends with the same result, and the time lost stands side by side.
func TestBenchRestart(t *testing.T) {
	out := clitest.Printed(t, newBenchRestart(), "--members", "3", "--rounds", "12", "--compute", "2ms", "--checkpoint",
		"4", "--trials", "2")
	for _, line := range []string{
		`^3 processes, 12 rounds of 2ms and an Allreduce of 1000 float64: \d+ ms without a failure$`,
		`^one killed at a random moment, a checkpoint every 4 rounds, 2 trials; ms lost$`,
		`^run-through +-?\d+ +-?\d+ +-?\d+ +-?\d+%$`,
		`^run-through, serial +-?\d+ `, `^restart, checkpoint +-?\d+ `, `^restart, start +-?\d+ `,
	} {
		if !regexp.MustCompile(`(?m)` + line).MatchString(out) {
			t.Errorf("%s is not in\n%s", line, out)
		}
	}
	var r restart.Result
	text := clitest.Printed(t, newBenchRestart(), "--members", "2", "--rounds", "4", "--compute", "1ms", "--checkpoint",
		"2", "--trials", "1", "--json")
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Trials != 1 || len(r.Lost) != 4 {
		t.Errorf("%s: %v", text, err)
	}
}

func TestBenchRestartRefuses(t *testing.T) {
	for flag, want := range map[string]string{
		"--members=1": "choose a number between 2", "--checkpoint=101": "between 1 and 100", "--compute=2h": "choose a time",
		"--trials=0": "choose a number", "--rounds=0": "choose a number", "--elements=0": "choose a number",
	} {
		cmd := newBenchRestart()
		cmd.SetArgs([]string{flag})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
