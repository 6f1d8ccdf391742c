package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Groups that more than one task has rows of are aggregated twice: each task aggregates its
// rows, and what it gets is aggregated again where it meets. Aggregates for which that does
// not work get all of their rows in one place.

// partial says how an aggregate is computed from parts: what each task computes, and how that
// becomes the aggregate.
type partial struct {
	parts []string
	final string // with a verb for each part
}

var partials = map[string]partial{
	"sum":        {[]string{"sum"}, "sum(%s)"},
	"count":      {[]string{"count"}, "CAST(sum(%s) AS BIGINT)"},
	"count_star": {[]string{"count_star"}, "CAST(sum(%s) AS BIGINT)"},
	"min":        {[]string{"min"}, "min(%s)"},
	"max":        {[]string{"max"}, "max(%s)"},
	"bool_and":   {[]string{"bool_and"}, "bool_and(%s)"},
	"bool_or":    {[]string{"bool_or"}, "bool_or(%s)"},
	"avg":        {[]string{"sum", "count"}, "CAST(sum(%s) AS DOUBLE) / sum(%s)"},
}

// aggregation rewrites a block into two.
type aggregation struct {
	*planner
	first   node   // what tasks do with their rows
	groups  []node // expressions of GROUP BY
	outputs []node // outputs of first
	twice   bool   // whether all aggregates are computed from parts
}

// aggregate returns the aggregates of a block whose groups have rows in several tasks.
func (p *planner) aggregate(ctx context.Context, b *block) (relation, error) {
	a := &aggregation{planner: p, first: clone(b.node), groups: children(b.node, "group_expressions"), twice: true}
	a.first["modifiers"], a.first["having"] = []any{}, nil
	for i, g := range a.groups {
		g = clone(g)
		g["alias"] = p.mark.name("g", i)
		a.outputs = append(a.outputs, g)
	}
	found := a.found(b.node)
	for _, n := range found {
		a.twice = a.twice && decomposable(n)
	}
	final, err := a.final(ctx, b.node)
	if err != nil {
		return relation{}, err
	}
	a.first["select_list"] = list(a.outputs...)
	if !a.twice {
		a.first["group_expressions"], a.first["group_sets"] = []any{}, []any{}
		if !slices.ContainsFunc(found, countsRows) {
			a.first["modifiers"] = []any{node{"type": "DISTINCT_MODIFIER", "distinct_on_targets": []any{}}}
		}
	}
	rel, err := a.send(ctx)
	if err != nil {
		return relation{}, err
	}
	final["from_table"], err = p.reference(ctx, rel, p.mark.name("parts"))
	if err != nil {
		return relation{}, err
	}
	return p.finish(ctx, final, rel)
}

// output adds an output to the first block, or finds it there, and returns its name.
func (a *aggregation) output(n node) string {
	for _, s := range a.outputs[len(a.groups):] {
		if equal(s, n) {
			return text(s, "alias")
		}
	}
	n["alias"] = a.mark.name("a", len(a.outputs))
	a.outputs = append(a.outputs, n)
	return text(n, "alias")
}

// found returns the aggregates of a block.
func (a *aggregation) found(n node) (all []node) {
	eachOutside([]any{n["select_list"], n["having"]}, func(n node) bool {
		if isAggregate(n) {
			all = append(all, n)
			return false
		}
		return true
	})
	return all
}

func nameOf(n node) string { return strings.ToLower(text(n, "function_name")) }

// distinct reports whether an aggregate counts equal values once.
func distinct(n node) bool { return n["distinct"] == true }

func decomposable(n node) bool {
	_, known := partials[nameOf(n)]
	plain := !distinct(n) || nameOf(n) == "min" || nameOf(n) == "max"
	return known && plain && len(children(child(n, "order_bys"), "orders")) == 0 && len(children(n, "children")) <= 1
}

// countsRows reports whether it matters to an aggregate how often a row is there.
func countsRows(n node) bool { return !distinct(n) && nameOf(n) != "min" && nameOf(n) != "max" }

// final returns the block that follows the first one.
func (a *aggregation) final(ctx context.Context, n node) (node, error) {
	final := clone(n)
	final["where_clause"], final["modifiers"] = nil, []any{}
	var failed error
	var over func(n node) node
	over = func(n node) node {
		if isSubquery(n) { // It sees groups, and its aggregates are its own.
			n["child"], n["subquery"] = replace(n["child"], over), replace(n["subquery"], a.group)
			return n
		}
		other := a.group(n)
		if other == nil && isAggregate(n) {
			other, failed = a.of(ctx, n, failed)
			other["alias"] = text(n, "alias")
		}
		return other
	}
	for _, key := range []string{"select_list", "having", "group_expressions"} {
		final[key] = replace(final[key], over)
	}
	return final, failed
}

// group returns the column of the first block that has an expression of GROUP BY, or nil.
func (a *aggregation) group(n node) node {
	for i, g := range a.groups {
		if equal(g, n) {
			column := a.columnNode(text(a.outputs[i], "alias"))
			column["alias"] = text(n, "alias")
			return column
		}
	}
	return nil
}

// of returns what an aggregate is over the rows of the first block.
func (a *aggregation) of(ctx context.Context, n node, failed error) (node, error) {
	if !a.twice {
		return replace(clone(n), func(c node) node {
			if kind(c) != "COLUMN_REF" {
				return nil
			}
			return a.columnNode(a.output(clone(c)))
		}).(node), failed
	}
	other, err := a.sum(ctx, n)
	if err != nil {
		return n, err
	}
	return other, failed
}

// sum adds the parts of an aggregate to the first block, and returns the aggregate of them.
func (a *aggregation) sum(ctx context.Context, n node) (node, error) {
	how := partials[nameOf(n)]
	var names []any
	for _, function := range how.parts {
		part := clone(n)
		part["function_name"], part["distinct"] = function, false
		names = append(names, duck.Identifier(a.output(part)))
	}
	return a.expression(ctx, fmt.Sprintf(how.final, names...))
}

// fewRows is how many rows of parts each task may have that all get all of. More of them are
// sent to the tasks of their groups.
const fewRows = 10_000

// send sends the rows of the first block where they meet.
func (a *aggregation) send(ctx context.Context) (relation, error) {
	query, err := a.print(ctx, a.first)
	if err != nil {
		return relation{}, err
	}
	columns, err := a.describe(ctx, query)
	if err != nil {
		return relation{}, err
	}
	rows, err := a.estimate(ctx, query)
	if err != nil {
		return relation{}, err
	}
	key := hashable(columns[:len(a.groups)])
	if key == "" || !a.many(rows) {
		return a.exchange(ctx, "parts", query, All, "")
	}
	return a.exchange(ctx, "parts", query, Hash, key)
}

// hashable returns the column by which rows are best sent to tasks, or "".
func hashable(columns []column) (key string) {
	best := ""
	for _, c := range columns {
		f := families[c.kind]
		if f != "" && (best == "" || best != "number" && f == "number") {
			best, key = f, c.name
		}
	}
	return key
}

// finish returns the result of a block over rows that have met.
func (p *planner) finish(ctx context.Context, final node, rows relation) (relation, error) {
	query, err := p.print(ctx, final)
	if err != nil {
		return relation{}, err
	}
	rel := relation{query: query, divided: rows.divided}
	rel.columns, err = p.describe(ctx, query)
	if err != nil {
		return relation{}, err
	}
	for _, n := range children(final, "select_list") {
		if names := texts(n, "column_names"); len(names) == 1 && rows.key != "" && names[0] == rows.key {
			rel.key = text(n, "alias")
		}
	}
	return rel, nil
}
