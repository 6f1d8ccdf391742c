//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/launch"
	"github.com/pleach-go/pleach/internal/testutil"
	"github.com/pleach-go/pleach/sql/internal/queries"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
)

// commandVariable makes this test binary the command itself.
const commandVariable = "PLEACH_TEST_SQL_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// killCase is a rank that is killed when it begins a phase.
type killCase struct {
	plan, phase string
	rank        int
}

// cases are every rank, phase and plan, or with few set one rank for each stage.
func cases(t *testing.T, members int, few bool) (all []killCase) {
	t.Helper()
	for _, name := range []string{"broadcast", "repartition"} {
		plan, err := queries.Plan("q3", name)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range plan.Stages {
			if few {
				all = append(all, killCase{name, s.Name, i % members})
				continue
			}
			for rank := range members {
				all = append(all, killCase{name, s.Name, rank}, killCase{name, s.Name + ".exchange", rank})
			}
		}
	}
	return all
}

// Processes are killed in phases, and the answer is the right one. With PLEACH_FULL, that is
// every rank of eight in every phase, and the answer is the published one.
func TestKilled(t *testing.T) {
	scale, members, few := 0.01, 4, true
	if testutil.Full.On() {
		scale, members, few = 1, 8, false
	}
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := tpchdata.Generate(t.Context(), tpchdata.Config{Scale: scale, Parts: members, Replicas: 2, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	equal := 0
	for _, c := range cases(t, members, few) {
		t.Run(fmt.Sprintf("%s/%s/%d", c.plan, c.phase, c.rank), func(t *testing.T) {
			if c.run(t, dir, members) {
				equal++
			}
		})
	}
	t.Logf("%d answers are equal", equal)
}

func (c *killCase) run(t *testing.T, dir string, members int) (equal bool) {
	faults, err := launch.Schedule(members, []string{fmt.Sprintf("%d@/^phase %s$/", c.rank, c.phase)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	report, err := launch.Run(launch.Job{
		Size: members, Program: os.Args[0], Args: []string{"pleach-sql", "run", "--data", dir, "--query", "q3", "--plan", c.plan, "--json"},
		Env: []string{commandVariable + "=1"}, Faults: faults, Grace: time.Second,
		Output: &launch.Output{Stdout: launch.Stream{Writer: &stdout}, Stderr: launch.Stream{Writer: &stderr}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if o, failed := report.FirstFailure(); failed {
		t.Errorf("rank %d: %s", o.Rank, o.Text)
	}
	var result runJSON
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || result.Answer != tpchdata.Equal {
		t.Errorf("%v: printed %s\n%s", err, &stdout, &stderr)
		return false
	}
	return true
}
