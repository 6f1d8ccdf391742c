package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/cli/clitest"
	"github.com/pleach-go/pleach/lab/experiments"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pleach-lab": main})
}

// TestScripts runs the command as users do.
func TestScripts(t *testing.T) { clitest.RunScripts(t) }

func printed(t *testing.T, args ...string) string {
	t.Helper()
	return clitest.Printed(t, newRoot(), args...)
}

// The same seed gives the same figures, on any number of cores.
func TestSimIsDeterministic(t *testing.T) {
	simulate := func(cores int, args ...string) map[string]any {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		var object map[string]any
		if err := json.Unmarshal([]byte(printed(t, append([]string{"sim", "--json"}, args...)...)), &object); err != nil {
			t.Fatal(err)
		}
		delete(object, "seconds")
		delete(object, "memory_bytes")
		return object
	}
	for _, args := range [][]string{
		{"-P", "512", "--faults", "3%", "--runs", "40"},
		{"-P", "256", "--faults", "9", "--dissemination", "gossip"},
		{"-P", "256", "--faults", "9", "--start", "overlapped", "--correction", "optimized:2"},
	} {
		first := simulate(1, args...)
		for _, cores := range []int{1, 2} {
			if again := simulate(cores, args...); !reflect.DeepEqual(again, first) {
				t.Errorf("%v on %d cores: got %v, first %v", args, cores, again, first)
			}
		}
		if other := simulate(2, append(args, "--seed", "2")...); reflect.DeepEqual(other["coloring"], first["coloring"]) &&
			reflect.DeepEqual(other["messages_per_process"], first["messages_per_process"]) {
			t.Errorf("%v: seed 2 shows the same as seed 1", args)
		}
	}
}

func TestSimJSON(t *testing.T) {
	var object map[string]json.RawMessage
	text := printed(t, "sim", "-P", "64", "--faults", "2", "--json")
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	fields := func(name string) []string {
		var inner map[string]any
		if err := json.Unmarshal(object[name], &inner); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return slices.Sorted(maps.Keys(inner))
	}
	want := []string{"max", "mean", "p5", "p50", "p95", "p99", "p999", "stddev"}
	for _, figure := range []string{"coloring", "quiescence", "correction_time", "max_gap", "messages_per_process"} {
		if got := fields(figure); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", figure, got, want)
		}
	}
	if got := fields("unreached"); !slices.Equal(got, []string{"processes", "runs"}) {
		t.Errorf("unreached has %v", got)
	}
	if string(object["runs"]) != "100" || object["seconds"] == nil || strings.Count(text, "\n") != 1 {
		t.Errorf("want 100 runs, seconds, and one line: %s", text)
	}
}

func TestPicturesAreXML(t *testing.T) {
	dir := t.TempDir()
	tree, timeline := filepath.Join(dir, "tree.svg"), filepath.Join(dir, "timeline.svg")
	printed(t, "tree", "-P", "64", "--fail", "1,2", "--out", tree)
	printed(t, "sim", "-P", "16", "--fail", "1", "--die", "5@12!", "--timeline", timeline)
	for _, file := range []string{tree, timeline} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var svg struct {
			XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		}
		if err := xml.Unmarshal(content, &svg); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	scenario := &experiments.Scenario{Size: 8, L: 2, O: 1, Dissemination: "big", Correction: "none", Runs: 10}
	_, err := simulate(ctx, scenario, io.Discard)
	if err == nil || err.Error() != "interrupted after 0 of 10 runs" || cli.ExitCode(err) != cli.ExitInterrupted {
		t.Errorf("got %v, exit code %d", err, cli.ExitCode(err))
	}
}

// "Fractions of 65,536": 6, 65, 655, 1310 and 2621 are what the papers' rates
// come to.
func TestParseFaults(t *testing.T) {
	for text, want := range map[string]int{
		"0.01%": 6, "0.1%": 65, "1%": 655, "2%": 1310, "4%": 2621, "0": 0, "655": 655, "65535": 65535,
	} {
		if got, err := parseFaults(text, 65536); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	// In floating point 0.57% of 10,000 is a little less than 57.
	if got, err := parseFaults("0.57%", 10000); err != nil || got != 57 {
		t.Errorf("got %d, %v, want 57", got, err)
	}
	for _, text := range []string{"", "%", "x", "1.5", "-1", "-1%", "65536", "100%", "1e99"} {
		if got, err := parseFaults(text, 65536); err == nil || !strings.HasPrefix(err.Error(), "--faults "+text+": ") {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
}

// A bar appears only on a terminal, and only late.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 10)
	for done := range 5 {
		p.update(done)
	}
	p.update(2)
	if done := p.stop(); done != 4 || out.Len() > 0 {
		t.Errorf("%d done, printed %q", done, out.String())
	}
}

// Help texts are in plain English.
func TestHelpIsPlainEnglish(t *testing.T) { clitest.PlainHelp(t, newRoot(), "run-through", "silent") }
