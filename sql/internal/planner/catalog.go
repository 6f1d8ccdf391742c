package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// column is a column of a table or of a query's result.
type column struct{ name, kind string }

// describe returns the columns of a query's result.
func (r reader) describe(ctx context.Context, query string) (columns []column, err error) {
	_, rows, err := r.conn.Text(ctx, "DESCRIBE "+query) // without parentheses, because it may end with a comment
	for _, row := range rows {
		columns = append(columns, column{row[0], row[1]})
	}
	return columns, err
}

// estimate returns how many rows DuckDB expects of a query.
func (p *planner) estimate(ctx context.Context, query string) (float64, error) {
	if p.random != nil { // Nothing is chosen by costs.
		return 1, nil
	}
	_, rows, err := p.conn.Text(ctx, "EXPLAIN (FORMAT json) "+query)
	if err != nil {
		return 0, err
	}
	var tree any
	if err := json.Unmarshal([]byte(rows[0][1]), &tree); err != nil {
		return 0, fmt.Errorf("DuckDB's plan: %w", err)
	}
	expected := 1.0
	found := false
	each(tree, func(n node) bool {
		if estimate, ok := child(n, "extra_info")["Estimated Cardinality"].(string); ok && !found {
			if rows, err := strconv.ParseFloat(estimate, 64); err == nil {
				expected, found = max(rows, 1), true
			}
		}
		return !found
	})
	return expected, nil
}

// families are the types by which rows can be sent to tasks. Equal values of one family have
// equal hashes.
var families = map[string]string{
	"TINYINT": "number", "SMALLINT": "number", "INTEGER": "number", "BIGINT": "number",
	"UTINYINT": "number", "USMALLINT": "number", "UINTEGER": "number",
	"DATE": "date", "TIMESTAMP": "timestamp", "VARCHAR": "text",
}

// widths are the types that can be sent, and how many bytes a value has. That of a text is a
// guess.
var widths = map[string]int{
	"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INTEGER": 4, "BIGINT": 8, "HUGEINT": 16,
	"UTINYINT": 1, "USMALLINT": 2, "UINTEGER": 4, "UBIGINT": 8, "FLOAT": 4, "DOUBLE": 8, "DECIMAL": 16,
	"DATE": 4, "TIME": 8, "TIMESTAMP": 8, "TIMESTAMP_S": 8, "TIMESTAMP_MS": 8, "TIMESTAMP_NS": 8,
	"TIMESTAMP WITH TIME ZONE": 8, "INTERVAL": 16, "VARCHAR": 24, "BLOB": 32,
}

// width returns the bytes of a row, or an error if a column cannot be sent.
func width(columns []column) (int, error) {
	sum := 0
	for _, c := range columns {
		name, _, _ := strings.Cut(c.kind, "(")
		w := widths[name]
		if w == 0 || strings.HasSuffix(c.kind, "]") {
			return 0, refuse("column %s is of type %s, which is not sent between processes: cast it to a number, a date, a time or a text", c.name, c.kind)
		}
		sum += w
	}
	return sum, nil
}
