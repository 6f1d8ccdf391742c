package duck_test

import (
	"testing"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// A condition on the rows of a subquery with ORDER BY and LIMIT chooses among these rows. Random
// queries found that DuckDB 1.5.5 chooses among all rows of a join by default (seed 7000384).
func TestLimitComesBeforeConditions(t *testing.T) {
	db, err := duck.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, s := range []string{
		"CREATE TABLE t AS SELECT i AS a, i % 4 AS b FROM range(20) r(i)",
		"CREATE TABLE u AS SELECT i AS x FROM range(9) r(i)",
	} {
		if err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	const query = "SELECT a FROM (SELECT * FROM t LEFT JOIN u ON 4 = 1 ORDER BY a LIMIT 3) AS s WHERE b IN (SELECT x FROM u WHERE x = 3)"
	if _, rows, err := c.Text(t.Context(), query); err != nil || len(rows) > 0 { // b is 0, 1 and 2
		t.Errorf("%q, %v", rows, err)
	}
}
