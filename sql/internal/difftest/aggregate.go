package difftest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// grouped makes a block with aggregates.
func (g *generator) grouped(s *scope, depth int, wanted []string, from, where string) (m made) {
	var groups, constants []string // constants: positions and names among them
	for i, kind := range g.kindsOf(s, wanted) {
		e := g.expression(s, kind, 1)
		switch n := g.IntN(10); {
		case n < 4:
			g.output(&m, e, kind)
			groups = append(groups, e)
			constants = append(constants, pick(g, e, e, fmt.Sprint(i+1)))
			if name := m.columns[i].Name; name != "" && g.chance(15) {
				constants[len(constants)-1] = duck.Identifier(name)
			}
		case n < 9 || len(groups) == 0:
			a := g.aggregate(s, kind)
			if kind == "int" && g.chance(20) {
				a += " + 1"
			}
			if kind == "int" && g.chance(6) {
				a = "sum(" + a + ") OVER ()"
			}
			g.output(&m, a, kind)
		default:
			g.output(&m, groups[0], kind) // maybe of another kind, or a position
		}
	}
	switch {
	case len(groups) == 0 && g.chance(30):
		constants = append(constants, g.expression(s, g.kind(s), 1))
	case len(groups) > 0 && g.chance(20):
		constants = append(constants, pick(g, constants...)) // twice
	}
	m.text = "SELECT " + m.text + from + where
	switch {
	case g.chance(12) && wanted == nil:
		m.text += " GROUP BY ALL"
	case g.chance(8) && len(groups) > 0:
		m.text += g.groupingSets(groups)
	case len(constants) > 0:
		m.text += " GROUP BY " + strings.Join(constants, ", ")
	}
	if g.chance(25) {
		m.text += g.having(s, depth, m.columns)
	}
	return m
}

func (g *generator) groupingSets(groups []string) string {
	all := strings.Join(groups, ", ")
	return " GROUP BY " + pick(g, "ROLLUP ("+all+")", "CUBE ("+all+")", fmt.Sprintf("GROUPING SETS ((%s), (%s), ())", all,
		groups[0]))
}

func (g *generator) having(s *scope, depth int, columns []Column) string {
	i := slices.IndexFunc(columns, func(c Column) bool { return c.kind == "int" && c.Name != "" })
	left := g.aggregate(s, "int")
	if i >= 0 && g.chance(15) {
		left = duck.Identifier(columns[i].Name)
	}
	having := " HAVING " + left + pick(g, " > ", " < ", " = ", " IS NOT DISTINCT FROM ")
	if depth > 0 && g.chance(20) {
		return having + g.scalar(s, "int")
	}
	return having + fmt.Sprint(g.IntN(6))
}

// aggregate makes an aggregate whose value does not depend on the order of rows.
func (g *generator) aggregate(s *scope, kind string) string {
	filter := ""
	if g.chance(15) {
		filter = " FILTER (WHERE " + g.condition(s, 0) + ")"
	}
	distinct := pick(g, "", "", "", "DISTINCT ")
	e := func(kind string) string { return g.expression(s, kind, 1) }
	if g.open && g.chance(30) {
		return pick(g, "first(", "last(", "mode(") + mark + e(kind) + ")"
	}
	if g.chance(8) {
		x := e(kind)
		return pick(g, "first(", "last(") + x + " ORDER BY " + x + g.direction() + ")" + filter
	}
	var text string
	switch kind {
	case "int":
		other := g.kind(s)
		text = pick(g,
			func() string { return "count(*)" }, func() string { return "count(" + distinct + e(other) + ")" },
			func() string { return "sum(" + distinct + e("int") + ")" }, func() string { return "min(" + e("int") + ")" },
			func() string { return "max(" + distinct + e("int") + ")" },
			func() string { return "quantile_disc(" + e("int") + ", 0.5)" },
			func() string { return pick(g, "bit_and(", "bit_or(", "bit_xor(") + e("int") + ")" },
			func() string { return "count_if(" + e("bool") + ")" },
			func() string { return "approx_count_distinct(" + e("text") + ")" },
		)()
	case "float":
		text = pick(g, "avg(", "median(", "sum(", "avg("+distinct, "stddev_pop(", "var_samp(", "mad(", "entropy(") +
			e(pick(g, "float", "float", "decimal")) + ")"
		return "CAST(" + text + filter + " AS DOUBLE)"
	case "decimal":
		text = pick(g, "sum(", "min(", "max(", "sum("+distinct) + e("decimal") + ")"
	case "text":
		x := e("text")
		text = pick(g, "min("+x+")", "max("+x+")", fmt.Sprintf("string_agg(%s%s, ',' ORDER BY %s%s)", distinct, x, x,
			pick(g, "", " DESC")))
		if g.chance(12) {
			x = e(pick(g, "int", "text", "date"))
			return "CAST(list(" + x + " ORDER BY " + x + ")" + filter + " AS VARCHAR)"
		}
	case "bool":
		text = pick(g, "bool_and(", "bool_or(") + e("bool") + ")"
	default:
		text = pick(g, "min(", "max(") + e(kind) + ")"
	}
	return text + filter
}

// totally returns the columns by which rows are ordered totally, as far as expressions see them.
func totally(s *scope) string {
	var all []string
	for _, r := range s.relations {
		for _, c := range r.columns {
			if c.Name != "" {
				all = append(all, duck.Identifier(r.alias)+"."+duck.Identifier(c.Name))
			}
		}
	}
	return strings.Join(all, ", ")
}

// windows makes outputs with window functions, whose rows are ordered by all columns.
func (g *generator) windows(s *scope, wanted []string) (m made) {
	all := totally(s)
	for _, kind := range g.kindsOf(s, wanted) {
		e := g.expression(s, kind, 1)
		partition := ""
		if g.chance(50) {
			partition = "PARTITION BY " + g.expression(s, g.kind(s), 1) + " "
		}
		switch {
		case g.open && kind == "int" && g.chance(50):
			e = "row_number() OVER (" + partition + mark + ")"
		case kind == "int" && all != "" && g.chance(40):
			e = pick(g, "row_number()", "ntile(2)", "rank()", "dense_rank()") + " OVER (" + partition + "ORDER BY " + all + ")"
		case kind == "int" && all != "" && g.chance(40):
			e = pick(g, "count(*)", "sum("+e+")", "max("+e+") FILTER (WHERE "+g.simple(s)+")") + " OVER (" + partition +
				"ORDER BY " + all + g.frame() + ")"
		case kind == "int" && g.chance(40):
			e = pick(g, "count(*)", "sum("+e+")", "max("+e+")", "rank()", "count(DISTINCT "+e+")") + " OVER (" + partition +
				"ORDER BY " + g.expression(s, g.kind(s), 1) + g.direction() + ")"
		case all != "" && g.chance(50):
			nulls := pick(g, "", "", " IGNORE NULLS")
			e = pick(g, "lag(", "lead(", "first_value(", "last_value(") + e + nulls + ") OVER (" + partition + "ORDER BY " +
				all + ")"
		case g.chance(50):
			e = pick(g, "min(", "max(") + e + ") OVER (" + partition + ")"
		}
		g.output(&m, e, kind)
	}
	return m
}

func (g *generator) frame() string {
	return pick(g, "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
		" GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
		" ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
		" RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
}

// qualify makes QUALIFY, or "".
func (g *generator) qualify(s *scope) string {
	all := totally(s)
	if all == "" || !g.chance(25) {
		return ""
	}
	return fmt.Sprintf(" QUALIFY row_number() OVER (PARTITION BY %s ORDER BY %s) <= %d", g.expression(s, g.kind(s), 0),
		all, 1+g.IntN(2))
}
