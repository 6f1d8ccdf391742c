package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Every task runs every query. So a file that a query names itself would be read as a whole by
// every task, and each of its rows would count once for each task. Such a query is refused.

// UnpartitionedError is returned for a query that reads something that is not in parts.
type UnpartitionedError struct {
	Stage string // of a plan, by its name; empty for a query
	Reads string // a table function, or the name of a file
}

func (e *UnpartitionedError) Error() string {
	where := "the query"
	if e.Stage != "" {
		where = "phase " + e.Stage
	}
	return fmt.Sprintf("sql: %s reads %s itself: every task would read all of its rows, so that each counts once for each task. Make it a table of the source, whose rows are divided among the tasks, as pleach-sql import does", where, e.Reads)
}

// refuseUnpartitioned returns an error if a query of the plan reads files.
func refuseUnpartitioned(ctx context.Context, conn *duck.Conn, plan *Plan) error {
	for _, s := range plan.Stages {
		_, rows, err := conn.Text(ctx, "SELECT json_serialize_sql("+duck.Literal(s.Query)+")::VARCHAR")
		if err != nil || len(rows) != 1 {
			return fmt.Errorf("sql: phase %s: parsing the query: %d rows, %w", s.Name, len(rows), err)
		}
		var tree any
		if err := json.Unmarshal([]byte(rows[0][0]), &tree); err != nil {
			return fmt.Errorf("sql: phase %s: parsing the query: %w", s.Name, err)
		}
		if reads := fileRead(tree); reads != "" {
			return &UnpartitionedError{s.Name, reads}
		}
	}
	return nil
}

// fileRead returns what a parsed query reads that is no table, or "". A query with an error
// has no tree: running it tells the error.
func fileRead(tree any) string {
	switch node := tree.(type) {
	case []any:
		for _, child := range node {
			if reads := fileRead(child); reads != "" {
				return reads
			}
		}
	case map[string]any:
		switch node["type"] {
		case "TABLE_FUNCTION":
			function, _ := node["function"].(map[string]any)
			if name, _ := function["function_name"].(string); !harmless[strings.ToLower(name)] {
				return name + "()"
			}
		case "BASE_TABLE":
			if name, _ := node["table_name"].(string); strings.ContainsAny(name, "./*") {
				return duck.Literal(name)
			}
		}
		for _, child := range node {
			if reads := fileRead(child); reads != "" {
				return reads
			}
		}
	}
	return ""
}

// harmless are the table functions that compute their rows from their arguments.
var harmless = map[string]bool{"unnest": true, "range": true, "generate_series": true}
