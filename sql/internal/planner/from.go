package planner

import (
	"context"
	"slices"
)

// The tables of a block, as its joins have them.

// item is a part of FROM: a leaf, a derived table that is part of the block, or a join.
type item struct {
	leaf        *leaf
	derived     *block
	ref         *ref // of the derived table
	join        string
	left, right *item
	on          []node
}

// table binds a table reference.
func (b *binder) table(ctx context.Context, n node) (*item, error) {
	switch kind(n) {
	case "JOIN":
		return b.join(ctx, n)
	case "BASE_TABLE":
		return b.base(n)
	case "SUBQUERY":
		return b.derived(ctx, n)
	case "EMPTY", "TABLE_FUNCTION", "EXPRESSION_LIST":
		return b.computed(ctx, n)
	}
	return nil, refuse("%s in FROM is not understood: write tables, joins and subqueries", kind(n))
}

// base binds a table of the source, or one that an exchange has brought to all tasks.
func (b *binder) base(n node) (*item, error) {
	name := text(n, "table_name")
	rel, ok := b.tables[folded(name)]
	switch {
	case text(n, "schema_name") != "" || text(n, "catalog_name") != "" || !ok:
		return nil, refuse("there is no table %s: the source has %s", name, b.sourceTables())
	case len(texts(n, "column_name_alias")) > 0:
		return nil, refuse("table %s has other names for its columns: write them in SELECT", name)
	}
	return b.addLeaf(n, name, rel), nil
}

func (b *binder) addLeaf(n node, name string, rel relation) *item {
	if alias := text(n, "alias"); alias != "" {
		name = alias
	}
	l := &leaf{node: n, rel: rel, needed: make(map[string]bool)}
	l.ref = &ref{alias: name, columns: rel.columns, leaf: l}
	b.scope.add(l.ref, b.mark)
	n["alias"] = l.ref.name
	b.leaves = append(b.leaves, l)
	return &item{leaf: l}
}

// derived binds a subquery in FROM. If its rows come one by one from those of its tables, it
// is part of the block. Otherwise it is planned separately, and its result is a table.
func (b *binder) derived(ctx context.Context, n node) (*item, error) {
	query := child(child(n, "subquery"), "node")
	if text(n, "alias") == "" {
		n["alias"] = b.mark.name("derived", len(b.scope.refs))
	}
	if kind(query) == "SELECT_NODE" {
		inner, err := b.bind(ctx, query, nil)
		if err != nil {
			return nil, err
		}
		inner.rename(texts(n, "column_name_alias"))
		if inner.transparent() {
			n["column_name_alias"], query["modifiers"] = []any{}, []any{}
			return b.addDerived(n, inner), nil
		}
	}
	rel, err := b.query(ctx, query)
	if err != nil {
		return nil, err
	}
	for i, name := range texts(n, "column_name_alias") {
		if i < len(rel.columns) && rel.columns[i].name != name {
			return nil, refuse("columns of %s have other names: write SELECT … AS %s in it", text(n, "alias"), name)
		}
	}
	return b.addLeaf(n, "", rel), nil
}

func (b *binder) addDerived(n node, inner *block) *item {
	r := &ref{alias: text(n, "alias")}
	for _, o := range inner.outputs {
		c := column{name: o.name}
		if p, ok := placeOf(inner.scope, o.expr); ok {
			from, _ := p.ref.column(p.column)
			c.kind = from.kind
		}
		r.columns = append(r.columns, c)
	}
	b.scope.add(r, b.mark)
	n["alias"] = r.name
	b.leaves = append(b.leaves, inner.leaves...)
	return &item{derived: inner, ref: r}
}

// rename gives outputs the names that DuckDB gives the columns of a subquery, the first of them
// other names.
func (b *block) rename(names []string) {
	names = slices.Clone(names)
	for i := len(names); i < len(b.outputs); i++ {
		names = append(names, b.outputs[i].base)
	}
	for i, name := range dedupe(names[:len(b.outputs)]) {
		b.outputs[i].name = name
		b.outputs[i].expr["alias"] = name
	}
}

// computed binds rows that every task computes on its own.
func (b *binder) computed(ctx context.Context, n node) (*item, error) {
	if kind(n) == "EMPTY" {
		return nil, nil
	}
	lateral := false
	each(child(n, "function"), func(c node) bool {
		lateral = lateral || kind(c) == "COLUMN_REF"
		return true
	})
	if lateral {
		return nil, refuse("a function in FROM with a column as its argument: write it in SELECT, as in SELECT unnest(x)")
	}
	query := clone(b.template)
	query["select_list"], query["from_table"] = list(b.star), n
	printed, err := b.print(ctx, query)
	if err != nil {
		return nil, err
	}
	columns, err := b.describe(ctx, printed)
	if err != nil {
		return nil, err
	}
	i := b.addLeaf(n, text(child(n, "function"), "function_name"), relation{columns: columns})
	i.leaf.fixed = true
	return i, nil
}

func (b *binder) join(ctx context.Context, n node) (*item, error) {
	left, err := b.table(ctx, child(n, "left"))
	if err != nil {
		return nil, err
	}
	before := len(b.scope.refs)
	right, err := b.table(ctx, child(n, "right"))
	if err != nil {
		return nil, err
	}
	i := &item{join: text(n, "join_type"), left: left, right: right}
	switch form := text(n, "ref_type"); form {
	case "CROSS": // which DuckDB prints as a comma, with another precedence
		n["ref_type"], n["condition"] = "REGULAR", equalOnes(b.one)
	case "REGULAR":
	default:
		return nil, refuse("%s JOIN is not understood: write JOIN … ON", form)
	}
	if err := b.expressions(ctx, n, "condition"); err != nil {
		return nil, err
	}
	i.on = conjuncts(child(n, "condition"))
	for _, name := range texts(n, "using_columns") {
		equality, err := b.using(name, before, i.join)
		if err != nil {
			return nil, err
		}
		i.on = append(i.on, equality)
	}
	if i.join == "SEMI" || i.join == "ANTI" {
		for _, r := range b.scope.refs[before:] {
			r.hidden = true
		}
	}
	return i, nil
}

// equalOnes returns a condition that always holds.
func equalOnes(one node) node {
	return node{"class": "COMPARISON", "type": "COMPARE_EQUAL", "alias": "", "left": clone(one), "right": clone(one)}
}

// using returns the condition that USING means, which the planner needs to know.
func (b *binder) using(name string, before int, join string) (node, error) {
	var sides [2]node
	for i, r := range b.scope.refs {
		side := 0
		if i >= before {
			side = 1
		}
		c, ok := r.column(name)
		if !ok || r.merged[folded(name)] || sides[side] != nil {
			continue
		}
		sides[side] = b.columnNode(r.name, c.name)
		if r.leaf != nil {
			r.leaf.needed[c.name] = true
		}
		if side == 1 {
			if r.merged == nil {
				r.merged = make(map[string]bool)
			}
			r.merged[folded(name)] = true
		}
	}
	if sides[0] == nil || sides[1] == nil || join != "INNER" && join != "LEFT" {
		return nil, refuse("%s JOIN … USING (%s): write ON with both columns", join, name)
	}
	return node{"class": "COMPARISON", "type": "COMPARE_EQUAL", "left": sides[0], "right": sides[1]}, nil
}

// leaves appends the leaves of an item itself, without those of subqueries in expressions.
func (i *item) leaves(all []*leaf) []*leaf {
	switch {
	case i == nil:
		return all
	case i.leaf != nil:
		return append(all, i.leaf)
	case i.derived != nil:
		return i.derived.from.leaves(all)
	}
	return i.right.leaves(i.left.leaves(all))
}

// spreadFilters gives each table the conditions that concern it alone and hold for all rows
// of it that matter. A condition above an outer join says nothing about its right side.
func (b *binder) spreadFilters(i *item, conditions []node) {
	switch {
	case i == nil || i.derived != nil:
	case i.leaf != nil:
		for _, c := range conditions {
			if b.concerns(c, i.leaf) {
				i.leaf.filters = append(i.leaf.filters, c)
			}
		}
	case i.join == "INNER":
		b.spreadFilters(i.left, append(slices.Clone(conditions), i.on...))
		b.spreadFilters(i.right, append(slices.Clone(conditions), i.on...))
	case i.join == "LEFT" || i.join == "SEMI" || i.join == "ANTI":
		b.spreadFilters(i.left, conditions)
		b.spreadFilters(i.right, i.on)
	case i.join == "RIGHT":
		b.spreadFilters(i.left, i.on)
		b.spreadFilters(i.right, conditions)
	}
}

// concerns reports whether a condition is about one table only.
func (b *binder) concerns(condition node, l *leaf) bool {
	about, others := false, false
	each(condition, func(n node) bool {
		if isSubquery(n) {
			others = true
		}
		if kind(n) == "COLUMN_REF" {
			p, _, _ := b.scope.find(n)
			about, others = about || p.ref == l.ref, others || p.ref != l.ref
		}
		return true
	})
	return about && !others
}
