package sql_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/sql"
)

// A result is written to a file by one process, or to a directory by all, whichever dies.
func TestOut(t *testing.T) {
	d, _ := newData(t)
	const few, many = "SELECT o_orderpriority AS p, count(*) AS n FROM orders GROUP BY p ORDER BY p",
		"SELECT l_orderkey, o_totalprice FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE l_tax = 0"
	for i, c := range []struct{ query, out, read, order string }{
		{few, "few.parquet", "read_parquet('%s')", "p"},
		{few, "few.csv", "read_csv('%s')", "p"},
		{few, "few.json", "read_json('%s')", "p"},
		{many, "many/", "read_parquet('%s*.parquet')", "ALL"},
	} {
		want := aloneOn(t, d, fmt.Sprintf("SELECT * FROM (%s) ORDER BY %s", c.query, c.order))
		phases := phasesOf(t, d, c.query)
		for _, death := range []death{{}, {phases[len(phases)-1], []int{i}}} {
			t.Run(fmt.Sprint(c.out, death.phase), func(t *testing.T) {
				dir := t.TempDir()
				out := dir + "/" + c.out
				result := runJob(t, sql.Job{Query: c.query, Source: d, Out: out}, death)
				got := aloneOn(t, d, fmt.Sprintf("SELECT * FROM "+c.read+" ORDER BY %s", out, c.order))
				if !slices.EqualFunc(got, want, slices.Equal[[]string]) || int(result.Written) != len(want) {
					t.Errorf("%d rows, said %d, want %d: %v", len(got), result.Written, len(want), got[:min(len(got), 5)])
				}
				left, err := filepath.Glob(strings.TrimRight(out, "/") + "/.unfinished*")
				if err != nil || len(left) > 0 {
					t.Errorf("%v is left, %v", left, err)
				}
			})
		}
	}
}

// Out is a new file of a known kind.
func TestWrongOut(t *testing.T) {
	d, dir := newData(t)
	old := filepath.Join(dir, "old.csv")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for out, says := range map[string]string{
		old: "choose a new name", "result.txt": ".parquet, .csv or .json",
		dir + "/": "choose a new or empty directory",
	} {
		db, err := sql.Open()
		if err != nil {
			t.Fatal(err)
		}
		w := newWorlds(t, 1)[0]
		if _, err := db.Run(t.Context(), w, sql.Job{Query: "SELECT 1", Source: d, Out: out}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", out, err)
		}
		w.Abort()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
