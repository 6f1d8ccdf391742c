package difftest

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// column makes a reference to a column of a kind, or "" if there is none.
func (g *generator) column(s *scope, kind string) string { return g.reference(s, kind, 50) }

// qualified does so, too, with the name of the table.
func (g *generator) qualified(s *scope, kind string) string { return g.reference(s, kind, 0) }

func (g *generator) reference(s *scope, kind string, short int) string {
	type found struct{ alias, name string }
	var all []found
	count := make(map[string]int)
	for _, r := range s.relations {
		for _, c := range r.columns {
			count[folded(c.Name)]++
			if c.kind == kind && c.Name != "" {
				all = append(all, found{r.alias, c.Name})
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	f := pick(g, all...)
	if count[folded(f.name)] == 1 && g.chance(short) {
		return g.spelled(f.name)
	}
	return g.spelled(f.alias) + "." + g.spelled(f.name)
}

// spelled quotes a name, sometimes with letters of another case, which are the same to DuckDB.
func (g *generator) spelled(name string) string {
	if g.chance(10) {
		name = strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' {
				return c + 'A' - 'a'
			}
			return c
		}, name)
	}
	return duck.Identifier(name)
}

// expression makes an expression of a kind.
func (g *generator) expression(s *scope, kind string, depth int) string {
	if g.chance(65) || depth == 0 {
		if c := g.column(s, kind); c != "" {
			return c
		}
	}
	if depth == 0 || g.chance(25) {
		return g.literal(kind)
	}
	if g.open && g.IntN(8) == 0 {
		if e := g.undetermined(kind); e != "" {
			return e
		}
	}
	e := func(kind string) string { return g.expression(s, kind, depth-1) }
	switch n := g.IntN(100); {
	case n < 14:
		return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", g.simple(s), e(kind), e(kind))
	case n < 22:
		return fmt.Sprintf("%s(%s, %s)", pick(g, "coalesce", "coalesce", "nullif", "greatest", "least"), e(kind), e(kind))
	}
	return g.computed(kind, e)
}

// computed makes an expression of a kind with functions and operators.
func (g *generator) computed(kind string, e func(string) string) string {
	switch kind {
	case "int":
		return pick(g,
			func() string {
				return "(" + e("int") + pick(g, " + ", " - ", " % ", " // ", " * ") + pick(g, "1", "2", "3") + ")"
			},
			func() string { return "length(" + e("text") + ")" },
			func() string { return "day(" + e("date") + ")" },
			func() string { return "CAST(" + e("bool") + " AS INTEGER)" },
			func() string { return "abs(" + e("int") + ")" },
			func() string { return "date_diff('day', " + e("date") + ", " + e("date") + ")" },
			func() string { return "date_part('hour', " + e("time") + ")" },
			func() string { return "[" + e("int") + ", 2][1]" },
		)()
	case "float":
		return pick(g, "("+e("float")+" * 0.5)", "CAST("+e("decimal")+" AS DOUBLE)", "("+e("float")+" + "+e("float")+")",
			"round("+e("float")+", 1)", "("+e("int")+" / 2)")
	case "decimal":
		return "(" + e("decimal") + pick(g, " + ", " - ") + "0.25)"
	case "text":
		return pick(g, "("+e("text")+" || "+e("text")+")", "upper("+e("text")+")",
			"CAST("+e(pick(g, "int", "date", "decimal", "bool"))+" AS VARCHAR)",
			"substr("+e("text")+", 1, 1)", "concat("+e("text")+", "+e("text")+")", "trim("+e("text")+")",
			"replace("+e("text")+", 'a', 'xy')", "strftime("+e("date")+", '%d')")
	case "date":
		return "(" + e("date") + " + 1)"
	case "time":
		return pick(g, "date_trunc('day', "+e("time")+")", "("+e("time")+" + INTERVAL 1 HOUR)",
			"CAST("+e("date")+" AS TIMESTAMP)")
	case "span":
		return "(" + e("time") + " - " + e("time") + ")"
	case "bool":
		return "(" + pick(g, "NOT "+e("bool"), e("int")+" > 1", e("text")+" ILIKE 'A%'", e("bool")+" AND "+e("bool")) + ")"
	}
	return g.literal(kind)
}

// undetermined makes an expression whose value is not determined, with a mark, or "".
func (g *generator) undetermined(kind string) string {
	switch kind {
	case "int":
		return "CAST(random(" + mark + ") * 3 AS INTEGER)"
	case "date":
		return "today(" + mark + ")"
	case "time":
		return "CAST(now(" + mark + ") AS TIMESTAMP)"
	case "text":
		return "CAST(uuid(" + mark + ") AS VARCHAR)"
	}
	return ""
}

// mark is a comment in queries whose result is not determined.
const mark = "/*open*/"

// nulls are the types of NULL by kind.
var nulls = map[string]string{
	"int": "INTEGER", "float": "DOUBLE", "decimal": "DECIMAL(9,2)", "text": "VARCHAR", "date": "DATE", "time": "TIMESTAMP",
	"bool": "BOOLEAN",
	"span": "INTERVAL", "clock": "TIME", "blob": "BLOB", "uuid": "UUID", "list": "INTEGER[]",
}

func (g *generator) literal(kind string) string {
	if g.chance(6) {
		return "CAST(NULL AS " + nulls[kind] + ")"
	}
	switch kind {
	case "int":
		return fmt.Sprint(g.IntN(5))
	case "float":
		return fmt.Sprintf("CAST(%v AS DOUBLE)", float64(g.IntN(9))/4)
	case "decimal":
		return pick(g, "1.50", "0.25", "2.00")
	case "text":
		return pick(g, "'a'", "'b'", "'ab'", "''", "'it''s'", "'é'")
	case "date":
		return fmt.Sprintf("DATE '2026-01-%02d'", 1+g.IntN(5))
	case "time":
		return fmt.Sprintf("TIMESTAMP '2026-01-01 %02d:00:00'", g.IntN(5))
	case "span":
		return pick(g, "INTERVAL '1 month'", "INTERVAL '2 days'")
	case "clock":
		return fmt.Sprintf("TIME '%02d:30:00.25'", g.IntN(5))
	case "blob":
		return `CAST('\x00\xFF' AS BLOB)`
	case "uuid":
		return fmt.Sprintf("CAST('00000000-0000-0000-0000-00000000000%d' AS UUID)", g.IntN(4))
	case "list":
		return "[1, 2]"
	}
	return pick(g, "true", "false")
}

// simple makes a condition of columns and constants.
func (g *generator) simple(s *scope) string {
	kind := g.kind(s)
	a, b := g.expression(s, kind, 0), g.expression(s, kind, 0)
	return pick(g, a+" IS NULL", a+" = "+b, a+" <> "+b, a+" <= "+b, a+" > "+g.literal(kind))
}

// condition makes a condition, with subqueries if depth allows.
func (g *generator) condition(s *scope, depth int) string {
	kind := g.kind(s)
	e := func() string { return g.expression(s, kind, 1) }
	switch n := g.IntN(100); {
	case depth > 0 && n < 20:
		return g.subquery(s, kind, depth-1)
	case n < 30:
		return fmt.Sprintf("(%s %s %s)", g.condition(s, depth), pick(g, "AND", "AND", "OR"), g.simple(s))
	case n < 35:
		return "NOT (" + g.condition(s, depth) + ")"
	case n < 43:
		return e() + pick(g, " IS NULL", " IS NOT NULL")
	case n < 50:
		return fmt.Sprintf("%s %sIN (%s, %s)", e(), pick(g, "", "NOT "), g.literal(kind), g.literal(kind))
	case n < 56:
		return fmt.Sprintf("%s BETWEEN %s AND %s", e(), g.literal(kind), g.literal(kind))
	case n < 60:
		return g.expression(s, "text", 1) + pick(g, " LIKE '%a%'", " NOT LIKE '%a%'", " ILIKE 'A%'", " LIKE '_'")
	}
	return e() + pick(g, " = ", " = ", " <> ", " < ", " >= ", " IS DISTINCT FROM ") + pick(g, e(), g.literal(kind))
}

// subquery makes a condition with a subquery, which may refer to the block around it.
func (g *generator) subquery(s *scope, kind string, depth int) string {
	outer := s
	if g.chance(30) {
		outer = nil
	}
	switch g.IntN(6) {
	case 0, 1:
		return pick(g, "", "NOT ") + "EXISTS (" + g.inner(outer, depth, g.literal("int"), true) + ")"
	case 2, 3:
		return g.expression(s, kind, 1) + pick(g, " IN (", " NOT IN (", " = ANY (", " >= ALL (") + g.inner(outer, depth,
			"", false, kind) + ")"
	case 4:
		other := g.kind(s)
		return fmt.Sprintf("(%s, %s)%s(%s)", g.expression(s, kind, 1), g.expression(s, other, 1), pick(g, " IN ", " NOT IN "),
			g.inner(outer, depth, "", false, kind, other))
	}
	return g.expression(s, kind, 1) + pick(g, " = ", " < ", " >= ") + g.scalarOf(outer, depth, kind)
}

// inner makes the query of a subquery: of columns of some kinds, or what is given. If outer is not nil
// it is compared with a block around it.
func (g *generator) inner(outer *scope, depth int, output string, star bool, wanted ...string) string {
	inner := &scope{outer: outer}
	from := g.from(inner, 0)
	if output == "" {
		var all []string
		for _, kind := range wanted {
			all = append(all, g.expression(inner, kind, 1))
		}
		output = strings.Join(all, ", ")
	} else if star && g.chance(30) {
		output = "*"
	}
	limit := ""
	if g.chance(8) && output != "*" {
		limit = fmt.Sprintf(" ORDER BY %s LIMIT %d", strings.Join([]string{"1", "2"}[:max(1, len(wanted))], ", "), g.IntN(4))
	}
	return "SELECT " + output + from + g.correlation(inner, depth) + limit
}

func (g *generator) correlation(inner *scope, depth int) string {
	var conditions []string
	for range 1 + g.IntN(2) {
		kind := g.kind(inner)
		a, b := g.column(inner, kind), g.around(inner, kind)
		if a != "" && b != "" {
			conditions = append(conditions, a+pick(g, " = ", " = ", " = ", " < ")+b)
		}
	}
	if g.chance(40) {
		conditions = append(conditions, g.condition(inner, depth))
	}
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// around makes a reference to a column of a block around, if no table of the subquery hides it.
func (g *generator) around(inner *scope, kind string) string {
	hidden := make(map[string]bool)
	for _, r := range inner.relations {
		hidden[folded(r.alias)] = true
	}
	for at := inner.outer; at != nil; at = at.outer {
		for _, r := range at.relations {
			for _, c := range r.columns {
				if !hidden[folded(r.alias)] && c.kind == kind && c.Name != "" && !g.chance(30) {
					return g.spelled(r.alias) + "." + g.spelled(c.Name)
				}
			}
		}
		for _, r := range at.relations {
			hidden[folded(r.alias)] = true
		}
	}
	return ""
}

// scalar makes a subquery with one value, which may refer to the block around it.
func (g *generator) scalar(s *scope, kind string) string {
	if g.chance(50) {
		s = nil
	}
	return g.scalarOf(s, 0, kind)
}

func (g *generator) scalarOf(outer *scope, depth int, kind string) string {
	inner := &scope{outer: outer}
	from := g.from(inner, 0)
	if g.chance(25) {
		return "(SELECT " + g.expression(inner, kind, 1) + from + g.correlation(inner, depth) + pick(g, " ORDER BY 1",
			" ORDER BY 1 DESC") + " LIMIT 1)"
	}
	return "(SELECT " + g.aggregate(inner, kind) + from + g.correlation(inner, depth) + ")"
}
