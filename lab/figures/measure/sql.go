package main

import (
	"fmt"
	"os"

	"github.com/pleach-go/pleach/lab/figures"
)

// sqlData is where the tables of the queries are while they are measured.
const sqlData = "bin/tpch1"

// sqlResult is what pleach-sql bench prints.
type sqlResult struct {
	Alone  float64 `json:"duckdb_ms"`
	Took   float64 `json:"ms"`
	Killed []struct {
		Equal bool `json:"equal"`
	} `json:"killed"`
}

// eachQuery runs the queries of TPC-H.
func eachQuery(l *lab, flags string, show func(name string, r *sqlResult)) {
	defer os.RemoveAll(sqlData)
	var generated struct{}
	l.measure(&generated, "bin/pleach-sql generate --sf 1 --parts 8 --json --out "+sqlData)
	for query := range 22 {
		name := fmt.Sprintf("q%d", query+1)
		if name == "q13" || name == "q16" { // Their columns are not generated.
			continue
		}
		var r sqlResult
		l.measure(&r, fmt.Sprintf("bin/pleach-sql bench --members 8 --json --data %s %s --query %s", sqlData, flags, name))
		show(name, &r)
	}
}

// sqlTimes compares queries with one DuckDB.
func sqlTimes(l *lab) []figures.Table {
	t := figures.Table{Name: "times", Columns: []string{"query", "one DuckDB", "8 processes"}}
	eachQuery(l, "--deaths=false --trials 1", func(name string, r *sqlResult) {
		t.Rows = append(t.Rows, []string{name, millis(r.Alone), millis(r.Took)})
	})
	return []figures.Table{t}
}

// sqlDeaths kills a process in each stage of queries.
func sqlDeaths(l *lab) []figures.Table {
	t := figures.Table{Name: "deaths", Columns: []string{"query", "stages with a death", "right answers"}}
	eachQuery(l, "--trials 1", func(name string, r *sqlResult) {
		right := 0
		for _, k := range r.Killed {
			if k.Equal {
				right++
			}
		}
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(len(r.Killed)), fmt.Sprint(right)})
	})
	return []figures.Table{t}
}
