//go:build duckdb_arrow

package duck

import (
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
	sum, err := c.Query(t.Context(), "SELECT sum(i)::BIGINT, sum(s::BIGINT)::BIGINT FROM numbers")
	if err != nil {
		t.Fatal(err)
	}
	defer sum.Release()
	if !sum.Next() {
		t.Fatal("no row")
	}
	b := sum.RecordBatch()
	if got := b.Column(0).ValueStr(0) + " " + b.Column(1).ValueStr(0); got != "12497500 12497500" {
		t.Errorf("sums are %s", got)
	}
}
