package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Agents of each system get events, and their lists drop a member that was killed.
func TestAgents(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{
		"--members", "4", "--events", "2", "--kills", "1", "--idle", "1s", "--systems",
		"pleach,serf-local", "--json",
	}, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Results []result }
	if err := json.Unmarshal(out.Bytes(), &object); err != nil || len(object.Results) != 2 {
		t.Fatalf("%v: %s", err, &out)
	}
	for _, r := range object.Results {
		if r.Complete == 0 || r.HalfP50 <= 0 || r.AllP50 < r.HalfP50 || r.OneListP50 <= 0 || r.AllListsP50 < r.OneListP50 ||
			r.RSS <= 0 || r.RSSAnon >= r.RSS {
			t.Errorf("%+v", r)
		}
	}
	if first := object.Results[0].Ratios; first.AllP50 != 1 || first.RSS != 1 {
		t.Errorf("%+v", first)
	}
}

func TestWrongFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--systems raft":        "--systems raft: choose of pleach, serf, serf-local",
		"--members 2":           "--members 2: ",
		"--members 4 --kills 2": "--kills 2: ",
		"--events 0":            "--events 0: ",
		"--idle 0s":             "--idle 0s: ",
		"now":                   `"now" is not a flag`,
	} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(flags), &out, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
