package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Query is a random query, and how far its result is determined.
type Query struct {
	SQL     string
	Ordered []int  // columns by which ORDER BY orders the rows, all of them if rows are determined
	Whole   string // the query without its LIMIT, if any of its rows are right
	Open    bool   // whether the result is not determined, and the query has to be refused
}

// relation is a table that names of a scope refer to.
type relation struct {
	alias   string
	columns []Column // those without a name cannot be referred to
}

// scope is the tables of a block, and of those around it.
type scope struct {
	relations []relation
	outer     *scope
}

// generator makes a query.
type generator struct {
	*rand.Rand
	tables  []Table
	with    []relation
	aliases int
	open    bool // whether expressions may be undetermined
}

// Generate makes a random query over tables. Most of them are valid.
func Generate(r *rand.Rand, tables []Table) Query {
	g := &generator{Rand: r, tables: tables}
	prefix := ""
	if g.chance(20) {
		prefix = g.ctes()
	}
	g.open = g.chance(3)
	q := g.query(2, nil, true)
	made := Query{SQL: prefix + q.text, Ordered: q.ordered, Open: strings.Contains(q.text, mark)}
	if q.whole != "" {
		made.Whole = prefix + q.whole
	}
	return made
}

// ctes makes WITH.
func (g *generator) ctes() string {
	var parts []string
	for range 1 + g.IntN(2) {
		sub := g.query(1, nil, false)
		name, as := g.name(), pick(g, "AS", "AS", "AS", "AS MATERIALIZED", "AS NOT MATERIALIZED")
		text, columns := sub.text, sub.columns
		names := ""
		if g.chance(20) {
			columns = slices.Clone(columns)
			columns[0].Name = g.name()
			columns = deduped(columns)
			names = "(" + duck.Identifier(columns[0].Name) + ")"
		}
		parts = append(parts, fmt.Sprintf("%s%s %s (%s)", duck.Identifier(name), names, as, text))
		g.with = append(g.with, relation{name, columns})
	}
	return "WITH " + strings.Join(parts, ", ") + " "
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) name() string { return names[g.IntN(len(names))] }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// made is a query that was made.
type made struct {
	text    string
	columns []Column
	ordered []int
	whole   string // as in Query
}

var kinds = []string{"int", "int", "int", "text", "text", "float", "decimal", "date", "time", "bool"}

func (g *generator) query(depth int, outer *scope, root bool) made {
	if depth == 0 || !g.chance(12) {
		return g.block(depth, outer, nil, root)
	}
	var wanted []string
	for range 1 + g.IntN(2) {
		wanted = append(wanted, pick(g, kinds...))
	}
	m := g.combined(depth-1, outer, wanted)
	if g.chance(20) {
		m.text = "(" + m.text + ")" + g.combination() + "(" + g.block(0, outer, wanted, false).text + ")"
	}
	g.finish(&m, root, func() string { return "" })
	return m
}

func (g *generator) combined(depth int, outer *scope, wanted []string) made {
	left, right := g.block(depth, outer, wanted, false), g.block(depth, outer, wanted, false)
	return made{text: fmt.Sprintf("(%s)%s(%s)", left.text, g.combination(), right.text), columns: left.columns}
}

func (g *generator) combination() string {
	return pick(g, " UNION ", " UNION ALL ", " UNION ALL ", " EXCEPT ", " INTERSECT ", " EXCEPT ALL ", " INTERSECT ALL ",
		" UNION ", " UNION BY NAME ")
}

// block makes a SELECT, with outputs of some kinds if they are not nil.
func (g *generator) block(depth int, outer *scope, wanted []string, root bool) made {
	s := &scope{outer: outer}
	from := g.from(s, depth)
	where := ""
	if g.chance(45) {
		where = " WHERE " + g.condition(s, depth)
	}
	form := g.IntN(100)
	if form >= 57 {
		m := g.grouped(s, depth, wanted, from, where)
		g.finish(&m, root, func() string { return g.aggregate(s, pick(g, "int", "text")) })
		return m
	}
	if form >= 45 {
		m := g.windows(s, wanted)
		m.text = "SELECT " + m.text + from + where + g.qualify(s)
		g.finish(&m, root, func() string { return "" })
		return m
	}
	m := g.plain(s, depth, wanted)
	if name := m.columns[0].Name; name != "" && m.text != "*" && where == "" && g.chance(5) {
		where = " WHERE " + duck.Identifier(name) + " IS NOT NULL" // the alias, unless there is such a column
	}
	if m.text != "*" && g.chance(5) {
		return g.distinctOn(s, m, from+where, root)
	}
	hidden := func() string { return g.expression(s, g.kind(s), 1) }
	distinct := pick(g, "", "", "", "DISTINCT ")
	if distinct != "" {
		hidden = func() string { return "" }
	}
	m.text = "SELECT " + distinct + m.text + from + where
	g.finish(&m, root, hidden)
	return m
}

// distinctOn makes DISTINCT ON in an order that says which rows stay.
func (g *generator) distinctOn(s *scope, m made, rest string, root bool) made {
	e := g.column(s, g.kind(s))
	if e == "" {
		e = g.literal("int")
	}
	keys := []string{e}
	for i := range m.columns {
		keys = append(keys, fmt.Sprint(i+1)+g.direction())
		m.ordered = append(m.ordered, i)
	}
	m.text = fmt.Sprintf("SELECT DISTINCT ON (%s) %s%s ORDER BY %s", e, m.text, rest, strings.Join(keys, ", "))
	if !root {
		m.text += " LIMIT 5"
	}
	m.ordered = nil // The first key is no output.
	return m
}

func (g *generator) direction() string {
	return pick(g, "", "", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST", " NULLS LAST", " DESC NULLS FIRST")
}

// finish adds ORDER BY and LIMIT. A block that is not the root has both or none.
func (g *generator) finish(m *made, root bool, hidden func() string) {
	if root && g.chance(4) {
		m.whole = m.text
		m.text += fmt.Sprintf(" LIMIT %d", g.IntN(5))
		return
	}
	if !g.chance(map[bool]int{true: 55, false: 12}[root]) {
		if g.open && !root && g.chance(10) {
			m.text += " LIMIT " + mark + "1"
		}
		return
	}
	total := !root || g.chance(60)
	var keys []string
	all := make([]int, len(m.columns))
	for i := range all {
		all[i] = i
	}
	clean := true
	if g.chance(25) {
		if h := hidden(); h != "" {
			keys, clean = append(keys, h+g.direction()), false
		}
	}
	first := g.IntN(len(m.columns))
	key := fmt.Sprint(first + 1)
	if name := m.columns[first].Name; name != "" && g.chance(40) && strings.Count(m.text, duck.Identifier(name)) == 1 {
		key = duck.Identifier(name)
		if m.columns[first].kind == "int" && g.chance(10) {
			key, clean = "-"+key, false
		}
		if m.columns[first].kind == "text" && g.chance(20) {
			key, clean = key+" COLLATE NOCASE", false
		}
	}
	keys = append(keys, key+g.direction())
	if clean {
		m.ordered = []int{first}
	}
	if total {
		for i := range all {
			keys = append(keys, fmt.Sprint(i+1)+g.direction())
		}
		m.ordered = all
		if g.chance(15) && clean {
			keys = []string{"ALL" + g.direction()}
		}
	}
	m.text += " ORDER BY " + strings.Join(keys, ", ")
	if total && (!root && !g.chance(8) || root && g.chance(60)) {
		m.text += g.limit()
	}
}

// limit makes LIMIT and OFFSET of rows whose order is determined.
func (g *generator) limit() string {
	switch n := g.IntN(100); {
	case n < 8:
		return fmt.Sprintf(" OFFSET %d", g.IntN(5))
	case n < 12:
		return fmt.Sprintf(" LIMIT %d%%", 10*g.IntN(11))
	case n < 40:
		return fmt.Sprintf(" LIMIT %d OFFSET %d", g.IntN(9), g.IntN(5))
	}
	return fmt.Sprintf(" LIMIT %d", g.IntN(9))
}

// deduped gives columns the names that they have in a subquery.
func deduped(columns []Column) []Column {
	all := slices.Clone(columns)
	used := make(map[string]bool)
	for i := range all {
		base := all[i].Name
		for n := 1; base != "" && used[folded(all[i].Name)]; n++ {
			all[i].Name = fmt.Sprintf("%s_%d", base, n)
		}
		used[folded(all[i].Name)] = true
	}
	return all
}

// plain makes outputs without aggregates.
func (g *generator) plain(s *scope, depth int, wanted []string) (m made) {
	if wanted == nil && g.chance(12) {
		for _, r := range s.relations {
			m.columns = append(m.columns, r.columns...)
		}
		m.text = "*"
		return m
	}
	for _, kind := range g.kindsOf(s, wanted) {
		e := g.expression(s, kind, 2)
		if depth > 0 && g.chance(5) {
			e = g.scalar(s, kind)
		}
		if n := len(m.columns); n > 0 && kind == m.columns[n-1].kind && m.columns[n-1].Name != "" && g.chance(8) {
			e = duck.Identifier(m.columns[n-1].Name) // the output before, unless there is such a column
		}
		g.output(&m, e, kind)
	}
	return m
}

func (g *generator) kindsOf(s *scope, wanted []string) []string {
	if wanted != nil {
		return wanted
	}
	var all []string
	for range 1 + g.IntN(3) {
		all = append(all, g.kind(s))
	}
	return all
}

// kind returns a kind of which there mostly is a column.
func (g *generator) kind(s *scope) string {
	if r := pick(g, s.relations...); g.chance(75) {
		return pick(g, r.columns...).kind
	}
	return pick(g, kinds...)
}

// output adds an output, with an alias or without.
func (g *generator) output(m *made, e, kind string) {
	c := Column{kind: kind}
	if m.text != "" {
		m.text += ", "
	}
	m.text += e
	if g.chance(65) {
		c.Name = g.name()
		m.text += " AS " + duck.Identifier(c.Name)
	}
	m.columns = append(m.columns, c)
}
