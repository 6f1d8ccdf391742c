package tables_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/tables"
)

// text returns the rows of a query in a new DuckDB.
func text(ctx context.Context, t *testing.T, query string) string {
	t.Helper()
	db, err := duck.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, rows, err := conn.Text(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(rows)
}

// Rows of CSV and Parquet files are in the parts of tables, each once, with the types that all
// rows have, and in all places.
func TestImport(t *testing.T) {
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for i := range 2 {
		text(t.Context(), t, duck.Copy(fmt.Sprintf("SELECT i + 10 * %d AS i FROM range(10) t(i)", i),
			fmt.Sprintf("%s/n-%d.parquet", in, i), "parquet"))
	}
	lines := "id,x\n" + strings.Repeat("1,5\n", 30_000) + "2,late text\n" // The type is seen in the last row.
	if err := os.WriteFile(in+"/late.csv", []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	rows, err := tables.Import(t.Context(), tables.Config{
		Files: map[string]string{"n": in + "/n-*.parquet", "late": in + "/late.csv"}, Parts: 3, Replicas: 2, Dir: out,
	})
	if err != nil || rows["n"] != 20 || rows["late"] != 30_001 {
		t.Fatalf("%v, %v", rows, err)
	}
	d, err := dataset.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range d.Places {
		if got := text(t.Context(), t, fmt.Sprintf("SELECT count(*), sum(i) FROM '%s/%s/n/*.parquet'", out, place)); got !=
			"[[20 190]]" {
			t.Errorf("%s has %s", place, got)
		}
	}
	for task := range 3 {
		files, err := d.Tables(t.Context(), task, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t.Context(), t, "SELECT column_type FROM (DESCRIBE FROM '"+files["late"][0]+
			"') WHERE column_name = 'x'"); got != "[[VARCHAR]]" {
			t.Errorf("task %d: x is %s", task, got)
		}
	}
}

// An import that fails or was killed leaves nothing that the next one refuses, and a directory with
// other files is left alone (case 104).
func TestFailedImport(t *testing.T) {
	in, parent := t.TempDir(), t.TempDir()
	right := in + "/right.csv"
	if err := os.WriteFile(right, []byte("id\n1\n2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(parent, "out")
	imports := func(files map[string]string) error {
		_, err := tables.Import(t.Context(), tables.Config{Files: files, Parts: 2, Replicas: 2, Dir: out})
		return err
	}
	for _, wrong := range []string{in + "/nothing.csv", in + "/n.txt"} {
		if err := imports(map[string]string{"a": right, "t": wrong}); err == nil {
			t.Errorf("%s is imported", wrong)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
	// A killed import has left parts, and one of its places is published.
	for _, dir := range []string{".unfinished-1/replica-1/a", "replica-0/a"} {
		if err := os.MkdirAll(filepath.Join(out, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := imports(map[string]string{"a": right}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 3 {
		t.Errorf("the dataset is %v, %v", entries, err)
	}
	if got := text(t.Context(), t, fmt.Sprintf("SELECT sum(id) FROM '%s/replica-1/a/*.parquet'", out)); got != "[[3]]" {
		t.Errorf("the rows are %s", got)
	}
	if err := imports(map[string]string{"a": right}); err == nil ||
		!strings.Contains(err.Error(), "choose a new or empty directory") {
		t.Errorf("another import has replaced a dataset: %v", err)
	}
	if _, err := dataset.Open(out); err != nil {
		t.Error(err)
	}
}
