package main

import (
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The page that shows why it works shows what the commands print, to the digit but for times.
func TestPageSeeWhyItWorks(t *testing.T) {
	tried := 0
	for _, block := range testutil.CodeBlocks(t, "../../../docs/research/see.md", "See why it works") {
		for _, c := range block.Commands() {
			words := strings.Fields(c.Line)
			if words[0] != "bin/pleach-lab" {
				t.Fatalf("%s is no command of the laboratory", c.Line)
			}
			got, want := withoutTimes(printed(t, words[1:]...)), withoutTimes(c.Output)
			if got != want {
				t.Errorf("%s prints\n%s\nand the page has\n%s", c.Line, got, want)
			}
			tried++
		}
	}
	if tried < 2 {
		t.Errorf("%d commands", tried)
	}
}

// withoutTimes leaves out the lines that tell how long a simulation took.
func withoutTimes(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "runs ") && !strings.HasPrefix(line, "engine ") {
			kept = append(kept, strings.TrimRight(line, " \n"))
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// The guide's fleet loses nothing, as it is printed there.
func TestGuideToFleets(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	commands := testutil.CodeBlocks(t, "../../../docs/guide/fleet.md", "Try it")[0].Commands()
	if len(commands) != 1 || strings.Count(commands[0].Output, "\n") < 3 {
		t.Fatalf("%+v", commands)
	}
	got := printed(t, strings.Fields(commands[0].Line)[1:]...)
	for line := range strings.Lines(commands[0].Output) {
		if line != "…\n" && !strings.Contains(got, line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
}
