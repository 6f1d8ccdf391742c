package planner

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Which tables of a block are divided, is chosen by the bytes that are sent: a table that is
// whole in each task is sent to all, one that is divided by a column once, and one that stays
// where it lies not at all.

// choose returns the cheapest layout by which the rows of a block are divided, or an empty one
// if there is none.
func (p *planner) choose(ctx context.Context, b *block) (layout, spread, error) {
	best, cost := layout{}, 0.0
	for _, l := range b.leaves {
		if err := p.weigh(ctx, l); err != nil {
			return nil, spread{}, err
		}
		cost += l.bytes * float64(p.tasks)
	}
	if b.whole != "" {
		return best, spread{}, p.affordable(b, cost)
	}
	var right []layout
	for _, l := range p.candidates(b) {
		if s := l.block(b); s.divided && !s.wrong {
			right = append(right, l)
		}
	}
	if len(right) == 0 {
		b.whole = "its join"
		return best, spread{}, p.affordable(b, cost)
	}
	if p.random != nil {
		best = right[p.random.IntN(len(right))]
	} else {
		best = slices.MinFunc(right, func(l, m layout) int { return cmp.Compare(p.cost(b, l), p.cost(b, m)) })
	}
	return best, best.block(b), nil
}

// many reports whether so many rows of a task are sent to the tasks of their keys, and not to all.
func (p *planner) many(rows float64) bool {
	if p.random != nil {
		return p.random.IntN(2) == 0
	}
	return rows > fewRows
}

// affordable refuses to bring more to all tasks than they may have memory for.
func (p *planner) affordable(b *block, bytes float64) error {
	if bytes/float64(p.tasks) <= maxWhole {
		return nil
	}
	return refuse("%s needs all rows in one place, which are about %.0f MB: aggregate or filter them in a subquery first",
		b.whole, bytes/float64(p.tasks)/1e6)
}

// maxWhole is how many bytes of tables are brought to all tasks for a query that needs all rows
// at once.
const maxWhole = 256 << 20

// weigh estimates the bytes of a table.
func (p *planner) weigh(ctx context.Context, l *leaf) error {
	if !l.rel.divided { // Every task has it.
		return nil
	}
	query, columns, err := p.leafQuery(ctx, l)
	if err != nil {
		return err
	}
	w, err := width(columns)
	if err != nil {
		return err
	}
	rows, err := p.estimate(ctx, query)
	// What was estimated is the part of one task.
	l.bytes = rows * float64(w) * float64(p.tasks)
	return err
}

// leafQuery returns the query for the needed columns and rows of a table.
func (p *planner) leafQuery(ctx context.Context, l *leaf) (string, []column, error) {
	var columns []column
	for _, c := range l.ref.columns {
		if l.needed[c.name] {
			columns = append(columns, c)
		}
	}
	if len(columns) == 0 { // as for count(*)
		columns = l.ref.columns[:1]
	}
	query := "SELECT " + identifiers(columns) + " FROM " + l.rel.from() + " AS " + duck.Identifier(l.ref.name)
	var conditions []string
	for _, f := range l.filters {
		text, err := p.printExpression(ctx, f)
		if err != nil {
			return "", nil, err
		}
		if !slices.Contains(conditions, text) {
			conditions = append(conditions, text)
		}
	}
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	return query, columns, nil
}

func (p *planner) printExpression(ctx context.Context, e node) (string, error) {
	query := clone(p.template)
	query["select_list"] = list(e)
	text, err := p.print(ctx, query)
	return strings.TrimPrefix(text, "SELECT "), err
}

// candidates returns layouts that may be right: one table stays where it lies, or the tables
// are divided by columns that are compared.
func (p *planner) candidates(b *block) (all []layout) {
	for _, l := range b.leaves {
		if l.rel.divided && !l.fixed {
			all = append(all, layout{l: l.rel.key})
		}
	}
	same := make(classes)
	compared(b, same)
	seen := make(map[place]bool)
	for _, l := range b.leaves {
		for _, c := range l.ref.columns {
			at := place{l.ref, c.name}
			root := same.root(at)
			if _, compares := same[at]; compares && !seen[root] {
				seen[root] = true
				all = append(all, layoutBy(b, same, root, true), layoutBy(b, same, root, false))
			}
		}
	}
	return all
}

// compared adds all columns that are compared anywhere in a block.
func compared(b *block, same classes) {
	var items func(i *item)
	add := func(conditions []node) {
		for _, c := range conditions {
			if p, q, ok := equality(b.scope, c); ok {
				same.join(p, q)
			}
		}
	}
	items = func(i *item) {
		switch {
		case i == nil || i.leaf != nil:
		case i.derived != nil:
			compared(i.derived, same)
			for _, o := range i.derived.outputs {
				if p, ok := placeOf(i.derived.scope, o.expr); ok {
					same.join(place{i.ref, o.name}, p)
				}
			}
		default:
			add(i.on)
			items(i.left)
			items(i.right)
		}
	}
	items(b.from)
	add(b.where)
	for _, c := range b.correlated {
		compared(c, same)
	}
}

// layoutBy divides all tables that have a column of a class, those of subqueries among them or
// not. Columns of other types than the first one's do not have the same hash.
func layoutBy(b *block, same classes, root place, subqueries bool) layout {
	l := make(layout)
	family := ""
	own := b.from.leaves(nil)
	for _, leaf := range b.leaves {
		if !leaf.rel.divided || leaf.fixed || !subqueries && !slices.Contains(own, leaf) {
			continue
		}
		for _, c := range leaf.ref.columns {
			f := families[c.kind]
			if _, taken := l[leaf]; !taken && f != "" && (family == "" || f == family) &&
				same.root(place{leaf.ref, c.name}) == root {
				l[leaf], family = c.name, f
			}
		}
	}
	return l
}

// cost returns the bytes that a layout sends.
func (p *planner) cost(b *block, l layout) (sum float64) {
	for _, leaf := range b.leaves {
		column, divided := l[leaf]
		switch {
		case !divided:
			sum += leaf.bytes * float64(p.tasks)
		case column != leaf.rel.key:
			sum += leaf.bytes
		}
	}
	return sum
}
