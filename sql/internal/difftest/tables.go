package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Column is a column of a table or of a query's result.
type Column struct {
	Name string
	Type string // as in SQL
	kind string // of the expressions that it can be part of
}

// Table is a table whose rows are divided among tasks.
type Table struct {
	Name    string
	Columns []Column
	Parts   [][][]string // by task: rows of literals
}

// names are names of tables, columns and aliases: plain ones, keywords, others that need quotation
// marks, and such that the planner might make up. Case matters in é and É alone.
var names = []string{
	"a", "b", "c", "d", "id", "v", "k", "x", "y", "n", "id_1", "a_1", "ID", "column", "order", "select", "group", "all",
	"q", "parts", "g0", "a1",
	"order_1", "order_2", "order1", "derived_0", "derived0", "parts_all", "rows_all", "a b", `x"y`, "é", "É", "日本", "it's",
	"a.b", "1", "(a + 1)", "main",
	"task_0", "pleach_rows", "temp", "count", "sum", "g0_p", "a1_p", "q_p", "order2_p", "_p1_", "parts_p",
	"unnamed_subquery", "null", "count_star()",
	"rowid", "now", "current_date", "*",
}

// types are the types of columns, with the kind of expression, and literals. Those after the first
// ones are rarer.
var types = []struct {
	name, kind string
	literal    func(*rand.Rand) string
}{
	{"INTEGER", "int", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(9) - 2) }},
	{"INTEGER", "int", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(5)) }},
	{"BIGINT", "int", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(7)) }},
	{"TINYINT", "int", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(5) - 1) }},
	{"UINTEGER", "int", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(5)) }},
	{"DOUBLE", "float", func(r *rand.Rand) string { return fmt.Sprint(float64(r.IntN(17)-8) / 4) }},
	{"DECIMAL(9,2)", "decimal", func(r *rand.Rand) string { return fmt.Sprintf("%.2f", float64(r.IntN(17)-8)/4) }},
	{"VARCHAR", "text", func(r *rand.Rand) string {
		return duck.Literal([]string{
			"", "a", "A", "b", "B", "ab", "a ", "a\tb", "é", "É", "日本", "it's", "NULL", "r1",
			"1",
		}[r.IntN(15)])
	}},
	{"VARCHAR", "text", func(r *rand.Rand) string { return duck.Literal(string(rune('a' + r.IntN(3)))) }},
	{"DATE", "date", func(r *rand.Rand) string { return fmt.Sprintf("'2026-01-%02d'", 1+r.IntN(5)) }},
	{"TIMESTAMP", "time", func(r *rand.Rand) string { return fmt.Sprintf("'2026-01-01 %02d:00:00'", r.IntN(5)) }},
	{"BOOLEAN", "bool", func(r *rand.Rand) string { return []string{"true", "false"}[r.IntN(2)] }},
	{"HUGEINT", "int", func(r *rand.Rand) string {
		return []string{
			"1", "2", "-3", "99999999999999999999999999999999999",
			"-170141183460469231731687303715884105727",
		}[r.IntN(5)]
	}},
	{"SMALLINT", "int", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(5) - 2) }},
	{"UBIGINT", "int", func(r *rand.Rand) string { return []string{"0", "1", "2", "18446744073709551615"}[r.IntN(4)] }},
	{"FLOAT", "float", func(r *rand.Rand) string { return fmt.Sprint(float64(r.IntN(17)-8) / 4) }},
	{"DOUBLE", "float", func(r *rand.Rand) string {
		return []string{
			"'nan'", "'inf'", "'-inf'", "'1e300'",
			"'0.5'",
		}[r.IntN(5)]
	}},
	{"DECIMAL(38,10)", "decimal", func(r *rand.Rand) string { return fmt.Sprintf("123456789012345678.%010d", r.IntN(3)) }},
	{"TIME", "clock", func(r *rand.Rand) string { return fmt.Sprintf("'%02d:30:00.25'", r.IntN(5)) }},
	{"INTERVAL", "span", func(r *rand.Rand) string {
		return []string{"'1 month'", "'2 days'", "'5 hours'", "'1 day'", "'-1 year'"}[r.IntN(5)]
	}},
	{"BLOB", "blob", func(r *rand.Rand) string { return []string{"''", `'\x00\xFF'`, "'a'", "'ab'"}[r.IntN(4)] }},
	{"TIMESTAMP_S", "time", func(r *rand.Rand) string { return fmt.Sprintf("'2026-01-01 %02d:00:00'", r.IntN(5)) }},
	{"UUID", "uuid", func(r *rand.Rand) string {
		return fmt.Sprintf("'00000000-0000-0000-0000-00000000000%d'",
			r.IntN(4))
	}},
	{"INTEGER[]", "list", func(r *rand.Rand) string { return fmt.Sprintf("[%d, %d]", r.IntN(3), r.IntN(3)) }},
}

// common is how many of the types are common.
const common = 12

// NewTables makes random tables. Some are empty, or have most of their rows in one part.
func NewTables(r *rand.Rand) []Table {
	all := make([]Table, 2+r.IntN(2))
	used := make(map[string]bool)
	tasks := 1 + r.IntN(5)
	for i := range all {
		all[i] = newTable(r, freshName(r, used), tasks)
	}
	return all
}

func freshName(r *rand.Rand, used map[string]bool) string {
	for {
		name := names[r.IntN(len(names))]
		if !used[folded(name)] {
			used[folded(name)] = true
			return name
		}
	}
}

// folded returns a name as DuckDB compares it: the case of letters counts outside of ASCII alone.
func folded(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func newTable(r *rand.Rand, name string, tasks int) Table {
	t := Table{Name: name, Parts: make([][][]string, tasks)}
	used := make(map[string]bool)
	var literals []func(*rand.Rand) string
	for range 2 + r.IntN(4) {
		kind := types[r.IntN(common)]
		if r.IntN(7) == 0 {
			kind = types[common+r.IntN(len(types)-common)]
		}
		t.Columns = append(t.Columns, Column{freshName(r, used), kind.name, kind.kind})
		literals = append(literals, kind.literal)
	}
	if r.IntN(12) == 0 {
		return t
	}
	skewed := -1 // the part that has most rows
	if r.IntN(5) == 0 {
		skewed = r.IntN(tasks)
	}
	var rows [][]string
	for task := range tasks {
		most := 9
		switch {
		case skewed == task:
			most = 25
		case skewed >= 0:
			most = 2
		case r.IntN(6) == 0:
			continue // a part without rows
		}
		for range r.IntN(most) {
			row := make([]string, len(t.Columns))
			for i, literal := range literals {
				row[i] = literal(r)
				if r.IntN(6) == 0 {
					row[i] = "NULL"
				}
			}
			if len(rows) > 0 && r.IntN(6) == 0 {
				row = slices.Clone(rows[r.IntN(len(rows))])
			}
			rows = append(rows, row)
			t.Parts[task] = append(t.Parts[task], row)
		}
	}
	return t
}

// statement returns the statement that creates the table with some rows in a schema.
func (t *Table) statement(schema string, parts ...[][]string) string {
	columns := make([]string, len(t.Columns))
	nothing := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = fmt.Sprintf("CAST(c%d AS %s) AS %s", i, c.Type, duck.Identifier(c.Name))
		nothing[i] = "NULL"
	}
	// The first row tells the number of columns, and is skipped.
	values := []string{"(0, " + strings.Join(nothing, ", ") + ")"}
	for _, rows := range parts {
		for _, row := range rows {
			values = append(values, fmt.Sprintf("(%d, %s)", len(values), strings.Join(row, ", ")))
		}
	}
	aliases := make([]string, len(t.Columns))
	for i := range aliases {
		aliases[i] = fmt.Sprintf("c%d", i)
	}
	return fmt.Sprintf("CREATE OR REPLACE TABLE %s.%s AS SELECT %s FROM (VALUES %s) AS rows(number, %s) WHERE number > 0",
		schema, duck.Identifier(t.Name), strings.Join(columns, ", "), strings.Join(values, ", "), strings.Join(aliases, ", "))
}
