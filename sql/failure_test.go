package sql_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/sql"
)

// runFailing runs a job that has to fail, and returns the errors of the ranks that have not died.
func runFailing(t *testing.T, j sql.Job, d death) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for rank, w := range newWorlds(t, members) {
		all.Go(func() {
			db, err := sql.Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			defer w.Abort()
			j := j
			j.Phase = func(name string) {
				if name == d.phase && slices.Contains(d.ranks, rank) {
					runtime.Goexit() // Without a word: the deferred Abort is a crash.
				}
			}
			_, err = db.Run(ctx, w, j)
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
			if err := w.Finalize(ctx); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	all.Wait()
	return errs
}

// A value that one task cannot cast ends the query with the same error in all processes, in every
// kind of exchange, and with another process's death before (case 104).
func TestErrorOfOneTask(t *testing.T) {
	d, _ := newData(t)
	const wrong = "CAST(CASE WHEN o_orderkey = 1 THEN 'x1' ELSE '1' END AS INTEGER)"
	const says = "Conversion Error: Could not convert string 'x1' to INT32"
	plan := func(exchange string) sql.Job {
		p, err := sql.ParsePlan("phase one\nSELECT o_orderkey, " + wrong + " AS c FROM orders\n=> x " + exchange +
			"\n\nphase two\nSELECT count(*) AS n FROM x\n=> y to all\n\nphase three\nFROM y\n=> result")
		if err != nil {
			t.Fatal(err)
		}
		return sql.Job{Plan: p, Source: d}
	}
	for name, c := range map[string]struct {
		job   sql.Job
		death death
		text  string
	}{
		"all": {sql.Job{Query: "SELECT sum(" + wrong + ") AS s FROM orders", Source: d}, death{}, says},
		"death": {
			sql.Job{Query: "SELECT sum(" + wrong + ") AS s FROM orders", Source: d},
			death{"parts", []int{0}},
			says,
		},
		"hash":  {plan("by hash(o_orderkey)"), death{}, "phase one of task 0: " + says},
		"range": {plan("by range(o_orderkey)"), death{"one", []int{3}}, "phase one of task 0: " + says},
		"directory": {
			sql.Job{Query: "SELECT " + wrong + " AS c FROM orders", Source: d, Out: t.TempDir() + "/"},
			death{},
			says,
		},
		"result": {
			sql.Job{Query: "SELECT sum(o_orderkey)::VARCHAR || 'x' AS s FROM orders HAVING CAST(s AS INTEGER) > 0", Source: d},
			death{},
			"Conversion Error: Could not convert string",
		},
		"file": {
			sql.Job{
				Query: "SELECT CAST(sum(o_orderkey)::VARCHAR || 'x' AS INTEGER) FROM orders", Source: d,
				Out: filepath.Join(t.TempDir(), "x.csv"),
			},
			death{"result", []int{1}},
			"Conversion Error: Could not convert string",
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := runFailing(t, c.job, c.death)
			if want := members - len(c.death.ranks); len(errs) != want {
				t.Fatalf("%d errors, want %d", len(errs), want)
			}
			for _, err := range errs {
				e, ok := errors.AsType[*sql.QueryError](err)
				if !ok || !strings.HasPrefix(e.Text, c.text) || err.Error() != errs[0].Error() {
					t.Errorf("%v\nwant %s", err, c.text)
				}
				if ok && c.job.Plan == nil && strings.Contains(e.Text, "LINE 1") {
					t.Errorf("the error quotes the planner's text: %s", e.Text)
				}
			}
		})
	}
}
