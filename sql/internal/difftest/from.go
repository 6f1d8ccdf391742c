package difftest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// from makes FROM.
func (g *generator) from(s *scope, depth int) string {
	text := " FROM " + g.item(s, depth)
	for g.chance(38) && len(s.relations) < 4 {
		before := len(s.relations)
		item := g.item(s, depth)
		join := pick(g, "JOIN", "JOIN", "JOIN", ",", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN",
			"ANTI JOIN", "CROSS JOIN", "USING", "NESTED", "ODD")
		switch join {
		case ",", "CROSS JOIN":
			text += " " + join + " " + item
		case "USING":
			text += g.using(s, before, item)
		case "NESTED":
			middle := len(s.relations)
			inner := g.item(s, 0)
			on := g.on(&scope{relations: s.relations[before:]}, middle-before)
			item = fmt.Sprintf("(%s %s %s ON %s)", item, pick(g, "JOIN", "LEFT JOIN", "RIGHT JOIN"), inner, on)
			text += fmt.Sprintf(" %s %s ON %s", pick(g, "JOIN", "LEFT JOIN", "FULL JOIN"), item, g.on(s, before))
		case "ODD":
			text += g.odd(s, before, item)
		default:
			text += fmt.Sprintf(" %s %s ON %s", join, item, g.on(s, before))
		}
		if join == "SEMI JOIN" || join == "ANTI JOIN" {
			s.relations = s.relations[:before]
		}
	}
	return text
}

// odd makes a join that is rarely used.
func (g *generator) odd(s *scope, before int, item string) string {
	left, right := &scope{relations: s.relations[:before]}, &scope{relations: s.relations[before:]}
	switch n := g.IntN(100); {
	case n < 40:
		return " NATURAL JOIN " + item
	case n < 60:
		kind := g.kind(left)
		a, b := g.qualified(left, kind), g.qualified(right, kind)
		if a != "" && b != "" {
			return fmt.Sprintf(" ASOF JOIN %s ON %s >= %s", item, a, b)
		}
	case n < 70 && g.open:
		return " POSITIONAL JOIN " + item + mark
	}
	// A subquery that refers to the tables before it.
	kind := g.kind(left)
	inner := g.inner(left, 0, g.expression(left, kind, 0), false)
	s.relations = append(s.relations[:before], relation{"later", []Column{{"z", "", kind}}})
	return pick(g, ", LATERAL (", ", (", " CROSS JOIN LATERAL (") + inner + ") AS later(z)"
}

func (g *generator) using(s *scope, before int, item string) string {
	for _, left := range s.relations[:before] {
		for _, c := range left.columns {
			for _, d := range s.relations[before].columns {
				if c.Name != "" && folded(c.Name) == folded(d.Name) && c.kind == d.kind {
					join := pick(g, "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
					return fmt.Sprintf(" %s %s USING (%s)", join, item, g.spelled(c.Name))
				}
			}
		}
	}
	return fmt.Sprintf(" JOIN %s ON %s", item, g.on(s, before))
}

// on makes a condition of a join: mostly an equality of columns.
func (g *generator) on(s *scope, before int) string {
	left, right := &scope{relations: s.relations[:before]}, &scope{relations: s.relations[before:]}
	var conditions []string
	for range 1 + g.IntN(2) {
		kind := g.kind(left)
		if g.chance(80) {
			a, b := g.qualified(left, kind), g.qualified(right, kind)
			if a == "" || b == "" {
				a, b = g.literal("int"), g.literal("int")
			}
			conditions = append(conditions, a+pick(g, " = ", " = ", " = ", " = ", " < ", " IS NOT DISTINCT FROM ")+b)
		} else {
			conditions = append(conditions, g.condition(&scope{relations: s.relations}, 0))
		}
	}
	return strings.Join(conditions, " AND ")
}

// item makes a table of FROM.
func (g *generator) item(s *scope, depth int) string {
	g.aliases++
	alias := fmt.Sprintf("t%d", g.aliases)
	if g.chance(30) {
		alias = g.name()
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(s.relations, func(r relation) bool { return folded(r.alias) == folded(name) })
	}
	if taken(alias) {
		alias = fmt.Sprintf("t%d", g.aliases)
	}
	as := " AS " + duck.Identifier(alias)
	add := func(columns []Column) { s.relations = append(s.relations, relation{alias, columns}) }
	switch n := g.IntN(100); {
	case depth > 0 && n < 25:
		sub := g.query(depth-1, nil, false)
		columns := deduped(sub.columns)
		if g.chance(8) {
			columns[0].Name = g.name()
			columns = deduped(columns)
			as += "(" + duck.Identifier(columns[0].Name) + ")"
		}
		add(columns)
		return "(" + sub.text + ")" + as
	case n < 45 && len(g.with) > 0:
		r := pick(g, g.with...)
		add(deduped(r.columns))
		return duck.Identifier(r.alias) + as
	case n < 48:
		add([]Column{{"r", "BIGINT", "int"}})
		return pick(g, "range(3)", "generate_series(0, 2)", "unnest([1, NULL, 2])") + as + "(r)"
	case n < 51:
		add([]Column{{"i", "INTEGER", "int"}, {"s", "VARCHAR", "text"}})
		return "(VALUES (1, 'a'), (2, NULL), (1, 'b'))" + as + "(i, s)"
	}
	t := pick(g, g.tables...)
	if g.chance(40) && !taken(t.Name) {
		alias, as = t.Name, ""
	}
	columns := t.Columns
	if as != "" && g.chance(2) {
		columns = slices.Clone(columns)
		columns[0].Name = "renamed"
		as += "(renamed)"
	}
	add(columns)
	return duck.Identifier(t.Name) + as
}
