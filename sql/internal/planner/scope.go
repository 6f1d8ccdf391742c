package planner

import (
	"slices"
	"strings"
)

// What names in a query mean.

// ref is a table that names of a scope refer to.
type ref struct {
	alias   string // by which the query calls it
	name    string // by which stages call it: no table of an enclosing block has the same
	columns []column
	leaf    *leaf
	merged  map[string]bool // columns that USING has merged into those of a table before
	hidden  bool            // the right side of a SEMI or ANTI JOIN, which only ON sees
}

func (r *ref) column(name string) (column, bool) {
	for _, c := range r.columns {
		if sameName(c.name, name) {
			return c, true
		}
	}
	return column{}, false
}

// scope is where names of a block are looked up, and then in its parent.
type scope struct {
	parent *scope
	refs   []*ref
	outer  bool // whether a name was found in a parent
}

// add adds a table. Its name differs from those of the blocks around.
func (s *scope) add(r *ref, m mark) {
	r.name = r.alias
	depth := 0
	for at := s.parent; at != nil; at = at.parent {
		depth++
		for _, other := range at.refs {
			if sameName(other.name, r.alias) {
				r.name = m.name(r.alias, depth)
			}
		}
	}
	s.refs = append(s.refs, r)
}

// place is a column of a table of a scope.
type place struct {
	ref    *ref
	column string
}

// find returns what a column reference means, and whether it is there.
func (s *scope) find(n node) (p place, found bool, err error) {
	names := texts(n, "column_names")
	for at := s; at != nil; at = at.parent {
		p, found, err := at.here(names)
		if found || err != nil {
			for passed := s; passed != at; passed = passed.parent {
				passed.outer = true
			}
			return p, found, err
		}
	}
	return place{}, false, nil
}

// here looks a name up among the tables of this scope. Every stored table also has a pseudocolumn
// rowid, the number of a row, which says nothing once the table is divided.
func (s *scope) here(names []string) (p place, found bool, err error) {
	pseudo := false
	for _, r := range s.refs {
		name := names[0]
		if len(names) > 1 {
			if !sameName(r.alias, name) {
				continue
			}
			name = names[1]
		} else if r.hidden || r.merged[folded(name)] {
			continue
		}
		c, ok := r.column(name)
		switch {
		case !ok:
			pseudo = pseudo || sameName(name, "rowid")
			continue
		case len(names) > 2:
			return p, false, refuse("%s: write TABLE.COLUMN, and fields of a struct as (TABLE.COLUMN).FIELD",
				strings.Join(names, "."))
		case found:
			return p, false, refuse("%s may be a column of %s or of %s: write which", name, p.ref.alias, r.alias)
		}
		p, found = place{r, c.name}, true
	}
	if pseudo && !found {
		return p, false, refuse("rowid is the number of a row in its process: use a column of the table")
	}
	return p, found, nil
}

// table reports whether a table of a scope, or of one around it, has a name.
func (s *scope) table(name string) bool {
	for at := s; at != nil; at = at.parent {
		if slices.ContainsFunc(at.refs, func(r *ref) bool { return sameName(r.alias, name) }) {
			return true
		}
	}
	return false
}
