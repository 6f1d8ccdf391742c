//go:build duckdb_arrow

package duck

import (
	"fmt"
	"testing"
)

func TestLoadQuery(t *testing.T) {
	db, err := Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows, err := c.Query(t.Context(), "SELECT i, i::VARCHAR AS s FROM range(5000) t(i)")
	if err != nil {
		t.Fatal(err)
	}
	d, err := db.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Load(t.Context(), "numbers", rows); err != nil {
		t.Fatal(err)
	}
	rows.Release()
	columns, sums, err := c.Text(t.Context(),
		"SELECT sum(i)::BIGINT AS i, sum(s::DECIMAL(9,2)) AS s, 'text' AS t FROM numbers")
	if got := fmt.Sprint(columns, sums); err != nil || got != "[i s t] [[12497500 12497500.00 text]]" {
		t.Errorf("sums are %s, %v", got, err)
	}
}
