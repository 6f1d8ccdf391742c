//go:build duckdb_arrow

package duck

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Text returns the rows of a query as text, and the names of the columns.
func (c *Conn) Text(ctx context.Context, query string) (columns []string, rows [][]string, err error) {
	r, err := c.Query(ctx, query)
	if err != nil {
		return nil, nil, err
	}
	defer r.Release()
	for _, f := range r.Schema().Fields() {
		columns = append(columns, f.Name)
	}
	for r.Next() {
		batch := r.RecordBatch()
		for i := range int(batch.NumRows()) {
			row := make([]string, len(columns))
			for c := range row {
				row[c] = text(batch.Column(c), i)
			}
			rows = append(rows, row)
		}
	}
	return columns, rows, r.Err()
}

// text returns a value as text. A decimal has all of its digits. The memory of a text is
// DuckDB's, so the text is copied.
func text(column arrow.Array, row int) string {
	if d, ok := column.(*array.Decimal128); ok && d.IsValid(row) {
		return d.Value(row).ToString(d.DataType().(*arrow.Decimal128Type).Scale)
	}
	return strings.Clone(column.ValueStr(row))
}
