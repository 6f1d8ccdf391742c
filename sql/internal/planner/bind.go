package planner

import (
	"context"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Names in the clauses of a block are bound to the tables that they mean.

// block is a SELECT.
type block struct {
	node    node
	scope   *scope
	from    *item
	where   []node
	outputs []output
	// leaves are the tables that the block reads, those of derived tables that are part of it
	// and of correlated subqueries among them.
	leaves []*leaf
	// correlated are the subqueries in conditions of WHERE that refer to the block.
	correlated []*block
	// whole says why all tables have to be whole, or is empty.
	whole string
}

// output is a column of a block's result.
type output struct {
	name string
	expr node
}

// leaf is a table that a block reads.
type leaf struct {
	node    node // a table reference
	ref     *ref
	rel     relation
	needed  map[string]bool // columns
	filters []node          // conditions that concern this table alone
	bytes   float64         // that its needed columns and rows are expected to have
	fixed   bool            // whether it cannot be divided
}

// binder binds the names of a block.
type binder struct {
	*planner
	*block
}

func (p *planner) bind(ctx context.Context, n node, parent *scope) (*block, error) {
	b := &binder{p, &block{node: n, scope: &scope{parent: parent}}}
	if kind(n) != "SELECT_NODE" {
		return nil, refuse("a correlated subquery with UNION, EXCEPT or INTERSECT: write one subquery for each side")
	}
	if child(n, "sample") != nil {
		return nil, errSample
	}
	var err error
	if b.from, err = b.table(ctx, child(n, "from_table")); err != nil {
		return nil, err
	}
	if err := b.expandStars(); err != nil {
		return nil, err
	}
	b.nameOutputs()
	b.groupByAll()
	if err := b.clauses(ctx); err != nil {
		return nil, err
	}
	b.where = conjuncts(child(n, "where_clause"))
	b.spreadFilters(b.from, b.where)
	b.whole = b.unusual()
	return b.block, nil
}

// transparent reports whether each row of the block comes from one row of its join, so that
// it does not matter which other rows there are.
func (b *block) transparent(c *catalog) bool {
	for _, m := range children(b.node, "modifiers") {
		if kind(m) != "ORDER_MODIFIER" {
			return false
		}
	}
	return b.whole == "" && !b.aggregates(c)
}

// aggregates reports whether the block has aggregates or groups.
func (b *block) aggregates(c *catalog) (found bool) {
	eachOutside([]any{b.node["select_list"], b.node["having"], b.node["modifiers"]}, func(n node) bool {
		found = found || c.isAggregate(n)
		return true
	})
	return found || len(children(b.node, "group_expressions")) > 0 || child(b.node, "having") != nil
}

func (c *catalog) isAggregate(n node) bool {
	return text(n, "class") == "FUNCTION" && c.aggregates[strings.ToLower(text(n, "function_name"))]
}

// expandStars writes the columns of * out.
func (b *binder) expandStars() error {
	var all []node
	for _, n := range children(b.node, "select_list") {
		if text(n, "class") != "STAR" {
			all = append(all, n)
			continue
		}
		if !plainStar(n) {
			return refuse("* with EXCLUDE, REPLACE, RENAME or COLUMNS: write the columns out")
		}
		table := text(n, "relation_name")
		for _, r := range b.scope.refs {
			if table != "" && !strings.EqualFold(table, r.alias) {
				continue
			}
			for _, c := range r.columns {
				if table != "" || !r.merged[strings.ToLower(c.name)] {
					all = append(all, b.columnNode(r.alias, c.name))
				}
			}
		}
	}
	b.node["select_list"] = list(all...)
	return nil
}

func plainStar(n node) bool {
	for _, key := range []string{"exclude_list", "qualified_exclude_list", "replace_list", "rename_list"} {
		if changes, _ := n[key].([]any); len(changes) > 0 {
			return false
		}
	}
	return n["expr"] == nil && n["columns"] != true
}

// nameOutputs gives each column of the result a name of its own.
func (b *binder) nameOutputs() {
	used := make(map[string]bool)
	for _, n := range children(b.node, "select_list") {
		name := text(n, "alias")
		if names := texts(n, "column_names"); name == "" && len(names) > 0 {
			name = names[len(names)-1]
		}
		if name == "" {
			name = "column"
		}
		for used[strings.ToLower(name)] {
			name += "_"
		}
		used[strings.ToLower(name)] = true
		n["alias"] = name
		b.outputs = append(b.outputs, output{name, n})
	}
}

// groupByAll writes the groups of GROUP BY ALL out: all outputs that have no aggregate in them.
func (b *binder) groupByAll() {
	if text(b.node, "aggregate_handling") != "FORCE_AGGREGATES" {
		return
	}
	var groups []node
	var set []any
	for _, o := range b.outputs {
		found := false
		eachOutside(o.expr, func(n node) bool {
			found = found || b.isAggregate(n)
			return true
		})
		if !found {
			group := clone(o.expr)
			group["alias"] = ""
			set = append(set, len(groups))
			groups = append(groups, group)
		}
	}
	b.node["aggregate_handling"], b.node["group_expressions"], b.node["group_sets"] = "STANDARD_HANDLING", list(groups...), []any{set}
}

// clauses binds the names in all clauses.
func (b *binder) clauses(ctx context.Context) error {
	b.positions()
	for _, key := range []string{"select_list", "where_clause", "group_expressions", "having", "qualify", "modifiers"} {
		if err := b.expressions(ctx, b.node, key); err != nil {
			return err
		}
	}
	return nil
}

// positions replaces positions and names of outputs in GROUP BY and ORDER BY by what they
// stand for. ORDER BY knows names of outputs first, GROUP BY those of columns.
func (b *binder) positions() {
	for _, g := range children(b.node, "group_expressions") {
		if i, _ := integer(g); i > 0 && i <= len(b.outputs) {
			become(g, b.outputs[i-1].expr)
			g["alias"] = ""
		}
	}
	for _, m := range children(b.node, "modifiers") {
		for _, o := range children(m, "orders") {
			e := child(o, "expression")
			i, _ := integer(e)
			if names := texts(e, "column_names"); len(names) == 1 {
				i = 1 + slices.IndexFunc(b.outputs, func(o output) bool { return strings.EqualFold(o.name, names[0]) })
			}
			if i > 0 && i <= len(b.outputs) {
				become(e, b.outputs[i-1].expr)
				e["alias"] = ""
			}
		}
	}
}

// expressions binds the names in a clause.
func (b *binder) expressions(ctx context.Context, parent node, key string) (err error) {
	inWhere := key == "where_clause"
	parent[key] = replace(parent[key], func(n node) node {
		if err != nil {
			return n
		}
		switch {
		case kind(n) == "COLUMN_REF":
			err = b.name(ctx, n)
			return n
		case isSubquery(n):
			if err = b.expressions(ctx, n, "child"); err == nil {
				err = b.subquery(ctx, n, inWhere)
			}
			return n
		}
		err = b.stable(n)
		return nil
	})
	return err
}

// stable refuses what gives other values each time.
func (b *binder) stable(n node) error {
	if name := strings.ToLower(text(n, "function_name")); text(n, "class") == "FUNCTION" && b.unstable[name] {
		return refuse("%s() has another value in each process or when it is called again: write the value, such as DATE '2026-01-31'", name)
	}
	return nil
}

// name binds a column reference. A name that is no column is that of an output, which is
// written in its place.
func (b *binder) name(ctx context.Context, n node) error {
	p, found, err := b.scope.find(n)
	if err != nil {
		return err
	}
	names := texts(n, "column_names")
	if !found {
		for _, o := range b.outputs {
			if itself := equal(o.expr, n); len(names) == 1 && strings.EqualFold(o.name, names[0]) && !itself {
				alias := n["alias"]
				become(n, o.expr)
				n["alias"] = alias
				wrapped := node{"expr": n}
				return b.expressions(ctx, wrapped, "expr")
			}
		}
		if err := b.stable(node{"class": "FUNCTION", "function_name": names[0]}); err != nil { // such as current_date
			return err
		}
		return refuse("column %s is not understood: write TABLE.COLUMN", strings.Join(names, "."))
	}
	if p.ref.leaf != nil {
		p.ref.leaf.needed[p.column] = true
	}
	n["column_names"] = []any{p.ref.alias, p.column}
	return nil
}

// subquery binds a subquery of an expression. One that refers to nothing outside is planned
// by itself, and becomes a table that all tasks have.
func (b *binder) subquery(ctx context.Context, n node, inWhere bool) error {
	holder := child(n, "subquery")
	query := child(holder, "node")
	if strings.HasSuffix(text(n, "subquery_type"), "EXISTS") {
		b.forgetStars(query)
	}
	if kind(query) == "SELECT_NODE" {
		inner, err := b.bind(ctx, query, b.scope)
		if err != nil {
			return err
		}
		if inner.scope.outer {
			b.leaves = append(b.leaves, inner.leaves...)
			b.limit(inner, inWhere)
			return nil
		}
	}
	rel, err := b.query(ctx, query)
	if err == nil {
		rel, err = b.toAll(ctx, "subquery", rel)
	}
	if err == nil {
		holder["node"], err = b.parse(ctx, rel.query)
	}
	return err
}

// forgetStars leaves the columns out of EXISTS (SELECT * …), which nobody reads.
func (b *binder) forgetStars(query node) {
	for _, n := range children(query, "select_list") {
		if text(n, "class") == "STAR" && plainStar(n) {
			become(n, b.one)
		}
	}
}

// limit notes which tables of a correlated subquery may be divided: those of its own FROM, if
// it is a condition of WHERE.
func (b *binder) limit(inner *block, inWhere bool) {
	if inWhere {
		b.correlated = append(b.correlated, inner)
	}
	own := inner.from.leaves(nil)
	for _, l := range inner.leaves {
		l.fixed = l.fixed || !inWhere || !slices.Contains(own, l)
	}
}

// unusual returns what in a block needs all rows at once, or "".
func (b *binder) unusual() (what string) {
	eachOutside([]any{b.node["select_list"], b.node["qualify"], b.node["modifiers"]}, func(n node) bool {
		if text(n, "class") == "WINDOW" {
			what = "a window function"
		}
		return true
	})
	sets, _ := b.node["group_sets"].([]any)
	switch {
	case child(b.node, "qualify") != nil:
		return "QUALIFY"
	case len(sets) > 1:
		return "GROUPING SETS"
	}
	for _, m := range children(b.node, "modifiers") {
		if len(children(m, "distinct_on_targets")) > 0 {
			return "DISTINCT ON"
		}
		if kind(m) == "LIMIT_PERCENT_MODIFIER" {
			return "LIMIT with percent"
		}
	}
	return what
}

// columnNode returns a reference to a column.
func (p *planner) columnNode(names ...string) node {
	n := clone(p.columnTemplate)
	all := make([]any, len(names))
	for i, name := range names {
		all[i] = name
	}
	n["column_names"] = all
	return n
}

// identifiers quotes names.
func identifiers(columns []column) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = duck.Identifier(c.name)
	}
	return strings.Join(quoted, ", ")
}
