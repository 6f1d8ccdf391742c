//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/pleach-go/pleach/sql/internal/bench"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
)

// A bench kills and restarts jobs, and all of them have the right answer.
func TestBench(t *testing.T) {
	t.Setenv(commandVariable, "1")
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := tpchdata.Generate(t.Context(), tpchdata.Config{
		Scale: 0.01, Parts: 3, Replicas: 1,
		Dir: dir,
	}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"bench", "--members", "3", "--data", dir, "--query", "q12", "--trials", "1", "--json"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var r bench.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Alone <= 0 || r.Took <= 0 || len(r.Killed) < 2 {
		t.Fatalf("measured %+v", r)
	}
	for _, k := range r.Killed {
		if !k.Equal {
			t.Errorf("killed in phase %s: the answer is different", k.Phase)
		}
	}
}
