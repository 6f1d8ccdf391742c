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

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
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

// killCase is a rank that is killed when it begins a phase, or none if there is no phase.
type killCase struct {
	query, phase string
	rank         int
}

// cases are all phases of a query, and each with another rank.
func cases(t *testing.T, data *dataset.Dataset, query string, members int) []killCase {
	t.Helper()
	text, err := queries.SQL(query)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := sql.NewPlan(t.Context(), text, data, members, "")
	if err != nil {
		t.Fatal(err)
	}
	all := []killCase{{query: query}, {query, "plan", 0}}
	for i, s := range plan.Stages {
		all = append(all, killCase{query, s.Name, i % members})
		if s.To.Kind != sql.ToResult {
			all = append(all, killCase{query, s.Name + ".exchange", (i + 1) % members})
		}
	}
	return all
}

// Processes are killed in phases, and the answer is the one of one DuckDB. With PLEACH_FULL,
// that is in every phase of every query at scale factor 1.
func TestKilled(t *testing.T) {
	scale, members, names := 0.01, 4, []string{"q21"}
	if testutil.Full.On() {
		scale, members, names = 1, 8, queries.Names()
	}
	dir := filepath.Join(t.TempDir(), "data")
	data, err := tpchdata.Generate(t.Context(), tpchdata.Config{Scale: scale, Parts: members, Replicas: 2, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if scale == 1 {
		checkPublished(t, data)
	}
	jobs, deaths := 0, 0
	for _, name := range names {
		for _, c := range cases(t, data, name, members) {
			t.Run(fmt.Sprintf("%s/%s/%d", c.query, c.phase, c.rank), func(t *testing.T) {
				jobs++
				deaths += c.run(t, dir, members)
			})
		}
	}
	// A job may be over before the launcher's signal arrives.
	if deaths < jobs/2 {
		t.Errorf("%d processes have died in %d jobs", deaths, jobs)
	}
}

// run returns how many processes have died.
func (c *killCase) run(t *testing.T, dir string, members int) (deaths int) {
	t.Helper()
	var kills []string
	if c.phase != "" {
		kills = []string{fmt.Sprintf("%d@/^phase %s$/", c.rank, c.phase)}
	}
	faults, err := launch.Schedule(members, kills, nil)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	report, err := launch.Run(launch.Job{
		Size: members, Program: os.Args[0], Args: []string{
			"pleach-sql", "run", "--data", dir, "--query", c.query,
			"--phases", "--json",
		},
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
	}
	return len(result.Failed)
}
