package difftest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Shrink returns the smallest query that it finds for which fails holds: it takes parts of the
// query's tree away as long as it does.
func (c *Cluster) Shrink(ctx context.Context, query string, fails func(string) bool) string {
	for again := true; again; {
		again = false
		var tree any
		_, rows, err := c.alone.Text(ctx, "SELECT json_serialize_sql("+duck.Literal(query)+")::VARCHAR")
		if err != nil || json.Unmarshal([]byte(rows[0][0]), &tree) != nil {
			return query
		}
		for n := 0; ; n++ {
			cut := cutter{left: n}
			smaller, _ := json.Marshal(cut.value(tree))
			if cut.left >= 0 {
				break // There is nothing more to take away.
			}
			_, rows, err := c.alone.Text(ctx, "SELECT json_deserialize_sql("+duck.Literal(string(smaller))+"::JSON)")
			if err == nil && len(rows) == 1 && len(rows[0][0]) < len(query) && fails(rows[0][0]) {
				query, again = rows[0][0], true
				break
			}
		}
	}
	return query
}

// cutter copies a tree without one part of it.
type cutter struct{ left int } // parts that are passed before; below 0: one was cut

func (c *cutter) cuts() bool {
	if c.left < 0 {
		return false
	}
	c.left--
	return c.left < 0
}

func (c *cutter) value(v any) any {
	switch v := v.(type) {
	case []any:
		var all []any = []any{}
		for _, child := range v {
			if _, ok := child.(map[string]any); ok && c.cuts() {
				continue
			}
			all = append(all, c.value(child))
		}
		return all
	case map[string]any:
		return c.node(v)
	}
	return v
}

func (c *cutter) node(n map[string]any) any {
	copied := make(map[string]any, len(n))
	_, expression := n["class"]
	for _, key := range slices.Sorted(maps.Keys(n)) {
		child, isNode := n[key].(map[string]any)
		optional := strings.Contains("where_clause having qualify filter filter_expr limit offset condition", key)
		switch {
		case isNode && optional && c.cuts():
			copied[key] = nil
			continue
		case isNode && expression && child["class"] != nil && c.cuts():
			return child // in place of what it is part of
		case isNode && n["type"] == "JOIN" && (key == "left" || key == "right") && c.cuts():
			return child
		case isNode && n["type"] == "SET_OPERATION_NODE" && (key == "left" || key == "right") && c.cuts():
			return child
		}
		copied[key] = c.value(n[key])
	}
	if list, ok := n["children"].([]any); ok && expression {
		for _, child := range list {
			if c.cuts() {
				return child
			}
		}
	}
	return copied
}
