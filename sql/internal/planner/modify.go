package planner

import (
	"context"
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// DISTINCT, ORDER BY and LIMIT come after everything else: on the rows of each task, and then
// together.

// modifiers are those of a block.
type modifiers struct {
	table         string // in which the columns of orders are
	distinct      bool
	orders        []string // as in ORDER BY
	limits        bool
	limit, offset int
}

func (m *modifiers) order() string { return strings.Join(m.orders, ", ") }

// takeModifiers removes the modifiers from a block. What it is ordered by becomes an output,
// unless it is one.
func (p *planner) takeModifiers(b *block) (*modifiers, error) {
	m := &modifiers{table: duck.Identifier(p.mark.name("q"))}
	var err error
	for _, n := range children(b.node, "modifiers") {
		switch kind(n) {
		case "DISTINCT_MODIFIER":
			m.distinct = true
		case "LIMIT_MODIFIER":
			err = m.takeLimit(n)
		case "ORDER_MODIFIER":
			err = p.takeOrders(b, m, n)
		default:
			err = refuse("%s is not understood: write ORDER BY and LIMIT with numbers", kind(n))
		}
		if err != nil {
			return nil, err
		}
	}
	b.node["modifiers"] = []any{}
	return m, nil
}

// maxLimit is how many rows LIMIT and OFFSET may name.
const maxLimit = 1 << 48

func (m *modifiers) takeLimit(n node) error {
	m.limits, m.limit = true, -1
	for key, to := range map[string]*int{"limit": &m.limit, "offset": &m.offset} {
		if value := child(n, key); value != nil {
			var ok bool
			*to, ok = integer(value)
			if !ok || *to < 0 || *to > maxLimit {
				return refuse("%s is not an integer from 0 to %d: write a number", strings.ToUpper(key), maxLimit)
			}
		}
	}
	return nil
}

func (p *planner) takeOrders(b *block, m *modifiers, n node) error {
	distinct := false
	for _, other := range children(b.node, "modifiers") {
		distinct = distinct || kind(other) == "DISTINCT_MODIFIER"
	}
	outputs := children(b.node, "select_list")
	for _, o := range children(n, "orders") {
		e, name := child(o, "expression"), ""
		for _, output := range outputs {
			if equal(output, e) {
				name = text(output, "alias")
			}
		}
		if name == "" {
			if distinct || text(e, "class") == "STAR" {
				return refuse("ORDER BY with DISTINCT: write columns of SELECT")
			}
			name = p.mark.name("order", len(outputs))
			e["alias"] = name
			outputs = append(outputs, e)
		}
		m.orders = append(m.orders, m.table+"."+duck.Identifier(name)+direction(o))
	}
	b.node["select_list"] = list(outputs...)
	return nil
}

func direction(order node) string {
	d := map[string]string{"DESCENDING": " DESC", "ASCENDING": " ASC"}[kind(order)]
	switch nulls := text(order, "null_order"); {
	case strings.Contains(nulls, "FIRST"):
		d += " NULLS FIRST"
	case strings.Contains(nulls, "LAST"):
		d += " NULLS LAST"
	}
	return d
}

// modify applies DISTINCT and LIMIT to rows.
func (p *planner) modify(ctx context.Context, a *answer, m *modifiers) error {
	if m.distinct {
		if err := p.distinct(ctx, a); err != nil {
			return err
		}
	}
	if !m.limits {
		return nil
	}
	if a.divided && m.limit >= 0 {
		first := *m
		first.limit, first.offset = m.limit+m.offset, 0
		var err error
		a.relation, err = p.exchange(ctx, "first", first.of(a), All, "")
		if err != nil {
			return err
		}
	}
	r, err := p.toAll(ctx, "rows", a.relation)
	if err != nil {
		return err
	}
	a.relation = r
	a.query, a.table, a.key = m.of(a), "", ""
	return nil
}

// of returns the query for rows in the order and within the limit.
func (m *modifiers) of(a *answer) string {
	query := "SELECT * FROM " + a.from() + " AS " + m.table
	if len(m.orders) > 0 {
		query += " ORDER BY " + m.order()
	}
	if m.limit >= 0 {
		query += fmt.Sprintf(" LIMIT %d", m.limit)
	}
	if m.offset > 0 {
		query += fmt.Sprintf(" OFFSET %d", m.offset)
	}
	return query
}

// distinct leaves one of equal rows.
func (p *planner) distinct(ctx context.Context, a *answer) error {
	q := " AS " + duck.Identifier(p.mark.name("q"))
	query := "SELECT DISTINCT * FROM " + a.from() + q
	if a.divided {
		rows, err := p.estimate(ctx, query)
		if err != nil {
			return err
		}
		to, key := All, hashable(a.columns)
		if key != "" && p.many(rows) {
			to = Hash
		} else {
			key = ""
		}
		a.relation, err = p.exchange(ctx, "distinct", query, to, key)
		if err != nil {
			return err
		}
		query = "SELECT DISTINCT * FROM " + a.from() + q
	}
	a.query, a.table = query, ""
	return nil
}

// end adds the last stage: its result has the names and types that the query's has.
func (p *planner) end(ctx context.Context, a answer, want []column, write bool) error {
	if a.visible != len(want) {
		return fmt.Errorf("sql: the plan has %d columns, and the query %d", a.visible, len(want))
	}
	if write {
		return p.write(ctx, a, want)
	}
	r, err := p.toAll(ctx, "rows", a.relation)
	if err != nil {
		return err
	}
	a.relation = r
	p.stages = append(p.stages, Stage{Name: unique(p.phases, "result"), Query: p.named(a, want), To: Result})
	return nil
}

// write has each task write its rows: a part of the result, in order if it has one.
func (p *planner) write(ctx context.Context, a answer, want []column) error {
	if !a.divided {
		return refuse("all of the result is in one place: write --out and the name of a file, such as result.parquet")
	}
	if a.order != "" {
		return refuse("ORDER BY in a result of several files: leave it out, or write --out and the name of a file")
	}
	p.stages = append(p.stages, Stage{Name: unique(p.phases, "write"), Query: p.named(a, want), To: Write})
	return nil
}

// named returns the query for the visible columns, with names and types.
func (p *planner) named(a answer, want []column) string {
	table := duck.Identifier(p.mark.name("q"))
	same := a.order == "" && len(a.columns) == a.visible
	outputs := make([]string, len(want))
	for i, w := range want {
		c := a.columns[i]
		e := table + "." + duck.Identifier(c.name)
		if c.kind != w.kind {
			e = fmt.Sprintf("CAST(%s AS %s)", e, w.kind)
		}
		if c != w {
			e += " AS " + duck.Identifier(w.name)
		}
		outputs[i] = e
		same = same && c == w
	}
	if same {
		return a.query
	}
	query := "SELECT " + strings.Join(outputs, ", ") + " FROM " + a.from() + " AS " + table
	if a.order != "" {
		query += " ORDER BY " + a.order
	}
	return query
}
