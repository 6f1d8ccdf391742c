package sql_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/tables"
)

// types are those that can be sent, with a value that follows from i.
var types = map[string]string{
	"BOOLEAN": "i % 3 = 0", "TINYINT": "i % 100", "SMALLINT": "i * -7", "INTEGER": "i * 99991",
	"BIGINT":  "i * 99999999999",
	"HUGEINT": "i * 9999999999999999999", "UTINYINT": "i % 250", "USMALLINT": "i", "UINTEGER": "i * 9999",
	"UBIGINT": "i * 99999999999",
	"FLOAT":   "i / 8", "DOUBLE": "i / 7", "DECIMAL(9,3)": "i / 8", "DECIMAL(38,10)": "i / 16",
	"VARCHAR": "repeat('é', (i % 5)::BIGINT)", "BLOB": "'ab' || i",
	"DATE": "DATE '1969-12-25' + i::INTEGER", "TIME": "TIME '00:00:01' + to_seconds(i)",
	"TIMESTAMP":   "TIMESTAMP '1969-12-31' + to_hours(i)",
	"TIMESTAMP_S": "TIMESTAMP '1999-12-31' + to_hours(i)", "TIMESTAMP_MS": "TIMESTAMP '1999-12-31' + to_hours(i)",
	"TIMESTAMP_NS": "TIMESTAMP '1999-12-31' + to_hours(i)",
	"INTERVAL":     "to_days(i::INTEGER)",
}

// newTypes makes two tables that have a column of each type, in which every fourth value is
// missing, and a number.
func newTypes(t *testing.T) *dataset.Dataset {
	t.Helper()
	file, out := filepath.Join(t.TempDir(), "t.parquet"), filepath.Join(t.TempDir(), "out")
	query := "SELECT i::BIGINT AS id"
	n := 0
	for kind, value := range types {
		query += fmt.Sprintf(", CASE WHEN (i + %d) %% 4 > 0 THEN (%s)::%s END AS %q", n, value, kind, kind)
		n++
	}
	aloneOn(t, &dataset.Dataset{Parts: 1}, duck.Copy(query+" FROM range(60) r(i)", file, "parquet"))
	if _, err := tables.Import(t.Context(), tables.Config{
		Files: map[string]string{"a": file, "b": file}, Parts: members,
		Replicas: 1, Dir: out,
	}); err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A value of each type is the same after it was sent, and so is a value that is missing.
func TestTypes(t *testing.T) {
	d := newTypes(t)
	queries := []string{"SELECT b.* FROM a JOIN b ON a.id = b.id ORDER BY b.id"}
	extremes := "SELECT count(*)"
	for kind := range types {
		extremes += fmt.Sprintf(`, min(%[1]q) AS "min %[1]s", max(%[1]q) AS "max %[1]s"`, kind)
	}
	queries = append(queries, extremes+" FROM a")
	for _, kind := range []string{"SMALLINT", "UINTEGER", "BIGINT", "VARCHAR", "DATE", "TIMESTAMP", "DOUBLE", "HUGEINT"} {
		queries = append(queries,
			fmt.Sprintf("SELECT a.%[1]q AS x, count(*), max(b.id) AS last FROM a JOIN b ON a.%[1]q = b.%[1]q GROUP BY x ORDER BY last", kind))
	}
	for _, query := range queries {
		want := aloneOn(t, d, query)
		got := runJob(t, sql.Job{Query: query, Source: d}, death{}).Rows
		if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Errorf("%s\nis %v\nwant %v", query, got, want)
		}
	}
}
