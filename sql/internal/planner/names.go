package planner

import (
	"fmt"
	"strings"
)

// Names that the planner makes up (columns of partial aggregates, hidden ORDER BY columns, stage
// tables) stand next to names of the user in one query, so they must differ from all of them.

// mark is a text that no name of the query, of a table or of a column contains. Every name that
// the planner makes up ends with it.
type mark string

// newMark returns a mark that none of the given texts contains, in any case.
func newMark(texts ...string) mark {
	all := folded(strings.Join(texts, "\n"))
	for n := 0; ; n++ {
		m := "_p"
		if n > 0 {
			m = fmt.Sprintf("_p%d_", n)
		}
		if !strings.Contains(all, m) {
			return mark(m)
		}
	}
}

// name returns a name that cannot be one of the user's.
func (m mark) name(parts ...any) string { return fmt.Sprint(parts...) + string(m) }

// folded returns a name as DuckDB compares it: the case of letters counts outside of ASCII only.
func folded(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func sameName(a, b string) bool { return folded(a) == folded(b) }

// dedupe returns the names that DuckDB gives the columns of a subquery: later ones of equal names
// get a number.
func dedupe(names []string) []string {
	used := make(map[string]bool)
	unique := make([]string, len(names))
	for i, base := range names {
		name := base
		for n := 1; used[folded(name)]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		used[folded(name)] = true
		unique[i] = name
	}
	return unique
}
