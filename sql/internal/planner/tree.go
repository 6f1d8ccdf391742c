package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// node is a node of a parsed query, as DuckDB's json_serialize_sql prints it.
type node = map[string]any

func kind(n node) string             { return text(n, "type") }
func text(n node, key string) string { s, _ := n[key].(string); return s }
func child(n node, key string) node  { c, _ := n[key].(node); return c }

func children(n node, key string) (all []node) {
	list, _ := n[key].([]any)
	for _, c := range list {
		if c, ok := c.(node); ok {
			all = append(all, c)
		}
	}
	return all
}

func texts(n node, key string) (all []string) {
	list, _ := n[key].([]any)
	for _, c := range list {
		if c, ok := c.(string); ok {
			all = append(all, c)
		}
	}
	return all
}

// list is the reverse of children.
func list(nodes ...node) []any {
	all := make([]any, len(nodes))
	for i, n := range nodes {
		all[i] = n
	}
	return all
}

func clone[T any](tree T) T {
	var copied func(any) any
	copied = func(v any) any {
		switch v := v.(type) {
		case node:
			c := make(node, len(v))
			for key, value := range v {
				c[key] = copied(value)
			}
			return c
		case []any:
			c := make([]any, len(v))
			for i, value := range v {
				c[i] = copied(value)
			}
			return c
		}
		return v
	}
	return copied(any(tree)).(T)
}

// become makes a node a copy of another one.
func become(n, other node) {
	other = clone(other)
	clear(n)
	maps.Copy(n, other)
}

// equal reports whether two expressions are the same, whatever they are called and wherever
// they stand in the query.
func equal(a, b any) bool {
	switch a := a.(type) {
	case node:
		b, ok := b.(node)
		if !ok {
			return false
		}
		for key, value := range a {
			if key != "alias" && key != "query_location" && !equal(value, b[key]) {
				return false
			}
		}
		for key := range b {
			if _, ok := a[key]; !ok && key != "alias" && key != "query_location" {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	return a == b
}

// each visits the nodes below a value, in the order of the keys. It does not go below a node
// for which visit returns false.
func each(v any, visit func(node) bool) {
	switch v := v.(type) {
	case node:
		if visit(v) {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				each(v[key], visit)
			}
		}
	case []any:
		for _, value := range v {
			each(value, visit)
		}
	}
}

// eachOutside visits the nodes of expressions that belong to a block itself, and not to its
// subqueries.
func eachOutside(v any, visit func(node) bool) {
	each(v, func(n node) bool {
		if isSubquery(n) {
			eachOutside(n["child"], visit)
			return false
		}
		return visit(n)
	})
}

// replace returns a value in which each node for which with returns another one is replaced.
func replace(v any, with func(node) node) any {
	switch v := v.(type) {
	case node:
		if other := with(v); other != nil {
			return other
		}
		for key, value := range v {
			v[key] = replace(value, with)
		}
	case []any:
		for i, value := range v {
			v[i] = replace(value, with)
		}
	}
	return v
}

// conjuncts returns the conditions that a condition is the conjunction of.
func conjuncts(condition node) []node {
	switch {
	case condition == nil:
		return nil
	case kind(condition) != "CONJUNCTION_AND":
		return []node{condition}
	}
	var all []node
	for _, c := range children(condition, "children") {
		all = append(all, conjuncts(c)...)
	}
	return all
}

// isSubquery reports whether an expression is a subquery. Table references have no class.
func isSubquery(n node) bool { return text(n, "class") == "SUBQUERY" }

// reader is DuckDB as a parser and printer of queries.
type reader struct {
	conn *duck.Conn
}

// parse returns the tree of a SELECT.
func (r reader) parse(ctx context.Context, query string) (node, error) {
	_, rows, err := r.conn.Text(ctx, "SELECT json_serialize_sql("+duck.Literal(query)+")::VARCHAR")
	if err != nil {
		return nil, err
	}
	var parsed struct {
		Message    string `json:"error_message"`
		Statements []node `json:"statements"`
	}
	d := json.NewDecoder(strings.NewReader(rows[0][0]))
	d.UseNumber()
	if err := d.Decode(&parsed); err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(parsed.Message, "Only SELECT statements"):
		return nil, fmt.Errorf("only SELECT is supported, and the query is %q", excerpt(query))
	case parsed.Message != "":
		return nil, fmt.Errorf("%s", parsed.Message)
	}
	if len(parsed.Statements) != 1 {
		return nil, fmt.Errorf("%d statements: write one SELECT", len(parsed.Statements))
	}
	return child(parsed.Statements[0], "node"), nil
}

// excerpt returns the beginning of a query, on one line.
func excerpt(query string) string {
	const most = 60
	line := []rune(strings.Join(strings.Fields(query), " "))
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}

// print returns the text of a query.
func (r reader) print(ctx context.Context, query node) (string, error) {
	tree, err := json.Marshal(node{"error": false, "statements": []any{node{"node": query, "named_param_map": []any{}}}})
	if err != nil {
		return "", err
	}
	_, rows, err := r.conn.Text(ctx, "SELECT json_deserialize_sql("+duck.Literal(string(tree))+"::JSON)")
	if err != nil {
		return "", err
	}
	// DuckDB prints some trees as a text of another meaning, such as a CROSS JOIN before an outer
	// join as a comma, which binds less.
	again, err := r.parse(ctx, rows[0][0])
	if err == nil && !same(query, again) {
		err = refuse("the query is not supported: DuckDB prints a part of it as %s, which has another meaning", rows[0][0])
	}
	return rows[0][0], err
}

// same reports whether two trees are the same, wherever they stand in the query.
func same(a, b any) bool {
	switch a := a.(type) {
	case node:
		b, ok := b.(node)
		if !ok {
			return false
		}
		if kind(a) == "EXPRESSION_LIST" && kind(b) == "SUBQUERY" { // VALUES are printed as (VALUES …).
			inner := child(child(child(b, "subquery"), "node"), "from_table")
			return kind(inner) == "EXPRESSION_LIST" && text(a, "alias") == text(b, "alias") && same(a["values"], inner["values"])
		}
		for key, value := range a {
			if other, has := b[key]; key != "query_location" && !same(value, other) &&
				!(empty(value) && (!has || empty(other))) {
				return false
			}
		}
		for key, value := range b {
			if _, has := a[key]; !has && !empty(value) && key != "query_location" {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}
