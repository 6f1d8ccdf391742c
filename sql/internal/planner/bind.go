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
	name  string // that no other output has
	base  string // that DuckDB gives it, maybe like others
	alias string // that the query gives it, or ""
	expr  node
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
	var err error
	b.from, err = b.table(ctx, child(n, "from_table"))
	if err != nil {
		return nil, err
	}
	if err := b.expandStars(); err != nil {
		return nil, err
	}
	if err := b.nameOutputs(ctx); err != nil {
		return nil, err
	}
	if err := b.groupByAll(); err != nil {
		return nil, err
	}
	if err := b.clauses(ctx); err != nil {
		return nil, err
	}
	for _, r := range b.scope.refs { // All references are by name now.
		r.alias = r.name
	}
	if err := b.dropConstants(); err != nil {
		return nil, err
	}
	b.where = conjuncts(child(n, "where_clause"))
	b.spreadFilters(b.from, b.where)
	b.whole = b.unusual()
	return b.block, nil
}

// transparent reports whether each row of the block comes from one row of its join, so that
// it does not matter which other rows there are.
func (b *block) transparent() bool {
	for _, m := range children(b.node, "modifiers") {
		if kind(m) != "ORDER_MODIFIER" {
			return false
		}
	}
	return b.whole == "" && !b.aggregates()
}

// aggregates reports whether the block has aggregates or groups.
func (b *block) aggregates() (found bool) {
	eachOutside([]any{b.node["select_list"], b.node["having"], b.node["modifiers"]}, func(n node) bool {
		found = found || isAggregate(n)
		return true
	})
	return found || len(children(b.node, "group_expressions")) > 0 || child(b.node, "having") != nil
}

func isAggregate(n node) bool {
	return text(n, "class") == "FUNCTION" && (orderless[nameOf(n)] || ordered[nameOf(n)])
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
			if r.hidden || table != "" && !sameName(table, r.alias) {
				continue
			}
			for _, c := range r.columns {
				if table != "" || !r.merged[folded(c.name)] {
					all = append(all, b.columnNode(r.alias, c.name))
				}
			}
		}
	}
	b.node["select_list"] = list(all...)
	return nil
}

func plainStar(n node) bool { return wholeStar(n) && n["columns"] != true }

// wholeStar reports whether all columns are meant, as in * and in ORDER BY ALL.
func wholeStar(n node) bool {
	for _, key := range []string{"exclude_list", "qualified_exclude_list", "replace_list", "rename_list"} {
		if changes, _ := n[key].([]any); len(changes) > 0 {
			return false
		}
	}
	return n["expr"] == nil
}

// nameOutputs gives each column of the result the name that it has in DuckDB, if the block is a
// subquery: a query around it may use that.
func (b *binder) nameOutputs(ctx context.Context) (err error) {
	for _, n := range children(b.node, "select_list") {
		o := output{alias: text(n, "alias"), expr: n}
		names := texts(n, "column_names")
		switch {
		case o.alias != "":
			o.base = o.alias
		case len(names) > 0:
			o.base = names[len(names)-1]
		default:
			o.base, err = b.printExpression(ctx, n)
			if err != nil {
				return err
			}
		}
		b.outputs = append(b.outputs, o)
	}
	b.rename(nil)
	return nil
}

// dropConstants removes constants from ORDER BY, and writes those of GROUP BY so that they are no
// positions. Columns that are there twice in GROUP BY are once enough.
func (b *block) dropConstants() error {
	for _, m := range children(b.node, "modifiers") {
		if kind(m) == "ORDER_MODIFIER" {
			m["orders"] = list(slices.DeleteFunc(children(m, "orders"), func(o node) bool {
				return text(child(o, "expression"), "class") == "CONSTANT"
			})...)
		}
	}
	b.node["modifiers"] = list(slices.DeleteFunc(children(b.node, "modifiers"), func(m node) bool {
		return kind(m) == "ORDER_MODIFIER" && len(children(m, "orders")) == 0
	})...)
	groups := children(b.node, "group_expressions")
	for _, g := range groups {
		if text(g, "class") == "CONSTANT" {
			if len(groupSets(b.node)) > 1 { // In some rows, an equal constant in SELECT is NULL.
				return refuse("a constant in ROLLUP, CUBE or GROUPING SETS: leave it out")
			}
			become(g, node{
				"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "child": clone(g),
				"cast_type": clone(child(child(g, "value"), "type")), "try_cast": false,
			})
		}
	}
	if len(groupSets(b.node)) != 1 {
		return nil
	}
	var once []node
	var set []any
	for _, g := range groups {
		if !slices.ContainsFunc(once, func(other node) bool { return equal(g, other) }) {
			set = append(set, len(once))
			once = append(once, g)
		}
	}
	b.node["group_expressions"], b.node["group_sets"] = list(once...), []any{set}
	return nil
}

// groupSets returns the sets of groups of a block: GROUP BY without ROLLUP and so on has one.
func groupSets(n node) []any {
	sets, _ := n["group_sets"].([]any)
	return sets
}

// groupByAll writes the groups of GROUP BY ALL out: all outputs that have a column and no aggregate
// in them.
func (b *binder) groupByAll() error {
	if text(b.node, "aggregate_handling") != "FORCE_AGGREGATES" {
		return nil
	}
	var groups []node
	var set []any
	aggregates := false
	for _, o := range b.outputs {
		found, column := false, false
		var nested error
		each(o.expr, func(n node) bool {
			if isSubquery(n) {
				nested = refuse("GROUP BY ALL with a subquery in SELECT: write the columns of GROUP BY out")
			}
			found, column = found || isAggregate(n), column || kind(n) == "COLUMN_REF"
			return true
		})
		if nested != nil {
			return nested
		}
		aggregates = aggregates || found
		if !found && column {
			group := clone(o.expr)
			group["alias"] = ""
			set = append(set, len(groups))
			groups = append(groups, group)
		}
	}
	b.node["aggregate_handling"], b.node["group_expressions"], b.node["group_sets"] = "STANDARD_HANDLING",
		list(groups...), []any{}
	switch {
	case len(groups) > 0:
		b.node["group_sets"] = []any{set}
	case !aggregates:
		return refuse("GROUP BY ALL without a column or an aggregate: leave it out")
	}
	return nil
}

// clauses binds the names in all clauses.
func (b *binder) clauses(ctx context.Context) error {
	if err := b.positions(); err != nil {
		return err
	}
	for _, key := range []string{"select_list", "where_clause", "group_expressions", "having", "qualify", "modifiers"} {
		if err := b.expressions(ctx, b.node, key); err != nil {
			return err
		}
	}
	return nil
}

// positions replaces positions and names of outputs in GROUP BY, ORDER BY and DISTINCT ON by the
// expressions that they stand for. GROUP BY looks for names among columns first, the other two
// among outputs.
func (b *binder) positions() error {
	groups := children(b.node, "group_expressions")
	for _, g := range groups {
		if i, _ := integer(g); i > 0 && i <= len(b.outputs) {
			if len(groups) > 1 && b.mentions(i) { // DuckDB may take the number for the group, and show 42.
				return refuse("GROUP BY %d, and %d is a value in SELECT: write the column of GROUP BY out", i, i)
			}
			become(g, b.outputs[i-1].expr)
			g["alias"] = ""
		}
	}
	for _, m := range children(b.node, "modifiers") {
		if !b.orderByAll(m) {
			for _, o := range children(m, "orders") {
				if err := b.outputFirst(child(o, "expression")); err != nil {
					return err
				}
			}
		}
		for _, e := range children(m, "distinct_on_targets") {
			if err := b.outputFirst(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// mentions reports whether a number is a value in SELECT or HAVING.
func (b *binder) mentions(number int) (found bool) {
	eachOutside([]any{b.node["select_list"], b.node["having"]}, func(n node) bool {
		i, ok := integer(n)
		found = found || ok && i == number
		return true
	})
	return found
}

// outputFirst replaces the position or the name of an output by its expression.
func (b *binder) outputFirst(e node) error {
	i, _ := integer(e)
	if names := texts(e, "column_names"); len(names) == 1 {
		if err := b.once(names[0]); err != nil {
			return err
		}
		i = 1 + slices.IndexFunc(b.outputs, func(o output) bool { return sameName(o.alias, names[0]) })
	}
	if i > 0 && i <= len(b.outputs) {
		become(e, b.outputs[i-1].expr)
		e["alias"] = ""
	}
	return nil
}

// orderByAll writes the columns of ORDER BY ALL out, and reports whether this is one. Their names
// are those of columns: an output may have the same name as the column that another output shows.
func (b *binder) orderByAll(modifier node) bool {
	orders := children(modifier, "orders")
	if len(orders) != 1 || text(child(orders[0], "expression"), "class") != "STAR" ||
		!wholeStar(child(orders[0], "expression")) {
		return false
	}
	var all []node
	for _, output := range b.outputs {
		if text(output.expr, "class") == "CONSTANT" { // It orders nothing, and would be a position.
			continue
		}
		o := clone(orders[0])
		o["expression"] = clone(output.expr)
		child(o, "expression")["alias"] = ""
		all = append(all, o)
	}
	modifier["orders"] = list(all...)
	return true
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
			err = b.name(n)
			return n
		case isSubquery(n):
			if err = b.expressions(ctx, n, "child"); err == nil {
				err = b.subquery(ctx, n, inWhere)
			}
			return n
		}
		return nil
	})
	return err
}

// refuseUnstable refuses a function that gives other values each time.
func refuseUnstable(name string) error {
	return refuse("%s() has another value in each process or when it is called again: write the value, such as DATE '2026-01-31'", name)
}

// name binds a column reference. A name that is no column is that of an output, which is
// written in its place.
func (b *binder) name(n node) error {
	p, found, err := b.scope.find(n)
	if err != nil {
		return err
	}
	names := texts(n, "column_names")
	if !found || !slices.Contains(b.scope.refs, p.ref) {
		for _, o := range b.outputs {
			if itself := equal(o.expr, n); len(names) == 1 && sameName(o.alias, names[0]) && !itself {
				if found {
					return refuse("%s may be a column of %s or a name in SELECT: write which", names[0], p.ref.alias)
				}
				if b.scope.table(names[0]) { // Then it is the row, as a struct.
					return refuse("%s may be a table or a name in SELECT: write which", names[0])
				}
				if err := b.once(names[0]); err != nil {
					return err
				}
				return substitute(n, o)
			}
		}
	}
	if !found {
		if unstable[folded(names[0])] { // such as current_date
			return refuseUnstable(names[0])
		}
		return refuse("column %s is not understood: write TABLE.COLUMN", strings.Join(names, "."))
	}
	if p.ref.leaf != nil {
		p.ref.leaf.needed[p.column] = true
	}
	n["column_names"] = []any{p.ref.name, p.column}
	return nil
}

// once refuses a name of several outputs: which of them is meant differs by clause.
func (b *binder) once(name string) error {
	var first node
	for _, o := range b.outputs {
		switch {
		case !sameName(o.alias, name):
		case first == nil:
			first = o.expr
		case !equal(first, o.expr):
			return refuse("%s is the name of several columns in SELECT: give them different names", name)
		}
	}
	return nil
}

// substitute writes an output, whose names are bound, in place of its name.
func substitute(n node, o output) (err error) {
	each(o.expr, func(c node) bool {
		if isSubquery(c) || text(c, "class") == "WINDOW" {
			err = refuse("%s is used by its name: write it in a subquery in FROM", o.alias)
		}
		return err == nil
	})
	if err == nil {
		alias := n["alias"]
		become(n, o.expr)
		n["alias"] = alias
	}
	return err
}

// subquery binds a subquery of an expression. One that refers to nothing outside is planned
// separately, and becomes a table that all tasks have.
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
		switch {
		case text(n, "class") == "WINDOW":
			what = "a window function"
		case kind(n) == "GROUPING_FUNCTION":
			what = "grouping()"
		}
		return true
	})
	switch {
	case child(b.node, "qualify") != nil:
		return "QUALIFY"
	case len(groupSets(b.node)) > 1:
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
