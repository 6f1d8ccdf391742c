package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("a suspicion of memberlist takes seconds")
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--members", "4", "--kills", "1", "--idle", "100ms", "--json"}, &out,
		io.Discard); err != nil {
		t.Fatal(err)
	}
	var got struct{ Results []result }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Results) != 2 {
		t.Fatalf("%v: %s", err, out.String())
	}
	for _, r := range got.Results {
		if r.Members != 4 || r.HeapKB <= 0 || r.Goroutines < 1 || r.Rounds != 1 || r.Complete != 1 || r.ViewP50 < 100 {
			t.Errorf("%+v", r)
		}
	}
}

// A group is known to have dropped a member when all survivors have.
func TestLost(t *testing.T) {
	g := &group{victim: 2, missing: map[int]bool{0: true, 1: true}, done: make(chan time.Time, 1)}
	for _, event := range [][2]int{{0, 1}, {0, 2}, {0, 2}} { // another member, rank 0, and again
		g.lost(event[0], event[1])
		if len(g.done) > 0 {
			t.Fatalf("known to all after %v", event)
		}
	}
	g.lost(1, 2)
	if len(g.done) != 1 {
		t.Error("both survivors have dropped it")
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--systems", "raft"},
		{"--members", "2"},
		{"--kills", "0"},
		{"--members", "4", "--kills", "2"},
		{"more"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
