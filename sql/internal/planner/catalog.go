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

// catalog is what the planner knows of functions, and asks DuckDB about queries.
type catalog struct {
	reader
	aggregates map[string]bool
	unstable   map[string]bool // functions whose value does not follow from their arguments
}

func newCatalog(ctx context.Context, r reader) (*catalog, error) {
	c := &catalog{reader: r, aggregates: make(map[string]bool), unstable: make(map[string]bool)}
	_, rows, err := r.conn.Text(ctx, "SELECT DISTINCT function_name, function_type, coalesce(stability, 'CONSISTENT') FROM duckdb_functions()")
	for _, row := range rows {
		switch {
		case row[1] == "aggregate":
			c.aggregates[row[0]] = true
		case row[1] == "scalar" && row[2] != "CONSISTENT":
			c.unstable[row[0]] = true
		}
	}
	return c, err
}

// describe returns the columns of a query's result.
func (c *catalog) describe(ctx context.Context, query string) (columns []column, err error) {
	_, rows, err := c.conn.Text(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+query+")")
	for _, row := range rows {
		columns = append(columns, column{row[0], row[1]})
	}
	return columns, err
}

// estimate returns how many rows DuckDB expects of a query.
func (c *catalog) estimate(ctx context.Context, query string) (float64, error) {
	_, rows, err := c.conn.Text(ctx, "EXPLAIN (FORMAT json) "+query)
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
