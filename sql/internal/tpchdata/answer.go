package tpchdata

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/queries"
)

// answers returns the answers that one DuckDB gives to the known queries over all parts.
func answers(ctx context.Context, d *dataset.Dataset) (map[string][][]string, error) {
	db, err := duck.Open(workers)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	conn, err := db.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	tables, err := d.Tables(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	for name, files := range tables {
		if err := conn.Exec(ctx, duck.ParquetView(name, files)); err != nil {
			return nil, err
		}
	}
	all := make(map[string][][]string)
	for _, name := range queries.Names() {
		query, err := queries.SQL(name)
		if err != nil {
			return nil, err
		}
		_, all[name], err = conn.Text(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("tpchdata: query %s: %w", name, err)
		}
	}
	return all, nil
}

// What [Judge] says of an answer.
const (
	Equal     = "equal"
	Different = "different"
	Unknown   = "unknown"
)

// Judge says whether the rows are the right answer of a query.
func Judge(d *dataset.Dataset, query string, rows [][]string) string {
	want, known := d.Answers[query]
	switch {
	case !known:
		return Unknown
	case slices.EqualFunc(rows, want, func(a, b []string) bool { return slices.EqualFunc(a, b, same) }):
		return Equal
	}
	return Different
}

// same reports whether two values are equal. Averages are sums of parts that are divided, and
// may differ in the last bit of their 53.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	const digits, precision = 15, 1e-15
	return err == nil && err2 == nil && max(significant(a), significant(b)) >= digits &&
		math.Abs(x-y) <= precision*math.Abs(x)
}

// significant returns the number of digits of a decimal number without zeros at its ends.
func significant(number string) int {
	return len(strings.Trim(strings.ReplaceAll(strings.TrimPrefix(number, "-"), ".", ""), "0"))
}
