package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// Each peer reaches all members, knows its version, and leaves nothing behind.
func TestPeers(t *testing.T) {
	for _, p := range peers() {
		t.Run(p.Name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			results, err := broadcast.Run(t.Context(), broadcast.Config{
				Systems: []string{p.Name}, External: []broadcast.System{p.System},
				Members: 4, Dead: []int{0}, Size: 64, Rounds: 3, Footprint: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			// A busy machine may make gossip lose a round, but not all.
			if r.Rounds != 3 || r.Complete == 0 || r.P50 <= 0 || r.Goroutines < 1 || r.Memory <= 0 {
				t.Errorf("%+v", r)
			}
			if p.Name != "serf" && r.Messages < 0.7 {
				t.Errorf("%v messages a member", r.Messages)
			}
			// Some libraries keep a few goroutines for the whole process.
			const forTheProcess = 10
			err = await(t.Context(), "goroutines to end", func() bool { return runtime.NumGoroutine() <= before+forTheProcess })
			if err != nil {
				t.Errorf("%v: %d before, %d after", err, before, runtime.NumGoroutine())
			}
		})
	}
}

// A context that has ended ends the start, or leaves something that can be
// closed.
func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range peers() {
		began := time.Now()
		if g, err := p.Start(ctx, 4, func(int, []byte) {}); err == nil {
			if err := g.Close(); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		if took := time.Since(began); took > timeout {
			t.Errorf("%s: %v", p.Name, took)
		}
	}
}

func TestRun(t *testing.T) {
	var out, errOut bytes.Buffer
	if err := run(t.Context(), strings.Fields("--members 3,4 --rounds 2 --systems pleach,nats --json"), &out,
		&errOut); err != nil {
		t.Fatal(err)
	}
	var got struct{ Results []map[string]any }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Results) != 4 || errOut.Len() > 0 {
		t.Fatalf("%v: %s%s", err, out.Bytes(), errOut.Bytes())
	}
	for i, r := range got.Results {
		if r["system"] != []string{"pleach", "nats"}[i%2] || r["members"] != float64(3+i/2) ||
			r["goroutines_per_member"] == nil || r["bytes_of_memory_per_member"] == nil {
			t.Errorf("%v", r)
		}
	}
}

func TestRunSaysWhatIsWrong(t *testing.T) {
	for args, want := range map[string]string{
		"--members x":              `--members x: "x" is not a number`,
		"--members 1":              "--members 1: choose",
		"--rounds 0":               "--rounds 0: choose",
		"--size 7":                 "nats: can be measured only",
		"--systems nats,carrier":   "--systems carrier: choose of pleach, bare, nats",
		"--systems nats,nats":      "--systems nats: choose of",
		"--systems nats something": `"something" is not a flag`,
	} {
		var out, errOut bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out, &errOut); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"--systems=nats"}, new(bytes.Buffer), new(bytes.Buffer)); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	results := []broadcast.Result{
		{
			System: "pleach", Members: 4, Size: 64, Rounds: 9, Complete: 9, P10: 50, P50: 100, P99: 200, Max: 300, Messages: 1.5,
			Bytes: 90, Goroutines: 5, Memory: 57100,
		},
		{
			System: "serf", Members: 4, Size: 64, Rounds: 9, Complete: 8, P10: 500, P50: 1250, P99: 2000, Max: 3000,
			Goroutines: 16, Memory: 185000,
		},
		{System: "serf", Members: 8, Size: 64, Rounds: 9, Goroutines: 16, Memory: 185000},
	}
	for markdown, want := range map[bool][]string{
		false: {
			"64 bytes to 4 members in one process, 9 rounds; µs\n",
			"serf                8        500       1250       2000       3000     12.50×          -          -       16.0      185.0\n",
			"64 bytes to 8 members in one process, 9 rounds; µs\n",
			"serf                0          -          -          -          -          -          -          -       16.0      185.0\n",
			"\nnats v",
		},
		true: {
			"| --- | ---: |",
			"| pleach | 9 | 50 | 100 | 200 | 300 | 1.00× | 1.50 | 90 | 5.0 | 57.1 |\n",
			"| serf | 8 | 500 | 1250 | 2000 | 3000 | 12.50× | - | - | 16.0 | 185.0 |\n",
		},
	} {
		var b strings.Builder
		if err := writeTable(&b, results, markdown); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("no %q in\n%s", w, b.String())
			}
		}
	}
}
