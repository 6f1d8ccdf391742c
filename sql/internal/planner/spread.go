package planner

// How the rows of a join lie among the tasks, if its tables lie in a certain way. A block is
// run on a task's rows only if each row of its join arises in exactly one task.

// spread is how rows lie among the tasks.
type spread struct {
	// divided says that each row is in one task, and otherwise that all are in each task.
	divided bool
	// keys are columns that have in each row the value by whose hash the row was sent.
	keys []place
	// wrong says that rows are missing or in several tasks.
	wrong bool
}

// layout says which tables are divided, and by which column: "" is where they lie. The others
// are whole in each task.
type layout map[*leaf]string

// block returns how the rows lie that pass the conditions of a block.
func (l layout) block(b *block) spread {
	s := l.item(b.scope, b.from, b.where)
	for _, c := range b.correlated {
		inner := l.block(c)
		// The rows that a subquery looks for are in the task of the row that it is for, if
		// it compares their keys.
		if inner.wrong || inner.divided && (!s.divided || !linked(c.scope, c.where, inner.keys, s.keys)) {
			s.wrong = true
		}
	}
	return s
}

// item returns how the rows of a part of FROM lie, of those for which conditions hold.
func (l layout) item(names *scope, i *item, conditions []node) spread {
	switch {
	case i == nil:
		return spread{}
	case i.leaf != nil:
		column, divided := l[i.leaf]
		switch {
		case !divided:
			return spread{}
		case column == "":
			return spread{divided: true}
		}
		return spread{divided: true, keys: []place{{i.leaf.ref, column}}}
	case i.derived != nil:
		return l.derived(i)
	case i.join == "INNER":
		return l.inner(names, i, conditions)
	case i.join == "RIGHT":
		return l.outer(names, i.right, i.left, i.on, conditions)
	case i.join == "LEFT" || i.join == "SEMI" || i.join == "ANTI":
		return l.outer(names, i.left, i.right, i.on, conditions)
	}
	s, r := l.item(names, i.left, nil), l.item(names, i.right, nil)
	return spread{wrong: s.wrong || r.wrong || s.divided || r.divided}
}

// derived returns how the rows of a derived table lie. Its keys are those that it shows.
func (l layout) derived(i *item) spread {
	s := l.block(i.derived)
	shown := spread{divided: s.divided, wrong: s.wrong}
	for _, o := range i.derived.outputs {
		if p, ok := placeOf(i.derived.scope, o.expr); ok && contains(s.keys, p) {
			shown.keys = append(shown.keys, place{i.ref, o.name})
		}
	}
	return shown
}

// inner returns how the rows of inner joins lie: of all that follow one another, because it
// does not matter in which order tables are joined.
func (l layout) inner(names *scope, i *item, conditions []node) spread {
	parts, all := flatten(i, nil, append([]node(nil), conditions...))
	same := equalities(names, all)
	var s spread
	for _, part := range parts {
		r := l.item(names, part, all)
		s.wrong = s.wrong || r.wrong
		if !r.divided {
			continue
		}
		if s.divided && !same.meet(s.keys, r.keys) {
			s.wrong = true
		}
		s.divided, s.keys = true, append(s.keys, r.keys...)
	}
	s.keys = same.with(s.keys)
	return s
}

// outer returns how the rows of an outer join lie, whose first side keeps all of its rows.
func (l layout) outer(names *scope, kept, other *item, on, conditions []node) spread {
	s, r := l.item(names, kept, conditions), l.item(names, other, on)
	if r.wrong || r.divided && (!s.divided || !linked(names, on, r.keys, s.keys)) {
		s.wrong = true
	}
	return s
}

func flatten(i *item, parts []*item, conditions []node) ([]*item, []node) {
	if i == nil || i.join != "INNER" {
		return append(parts, i), conditions
	}
	parts, conditions = flatten(i.left, parts, append(conditions, i.on...))
	return flatten(i.right, parts, conditions)
}

// linked reports whether a condition compares a key of one side with a key of the other.
func linked(names *scope, conditions []node, some, others []place) bool {
	for _, c := range conditions {
		if a, b, ok := equality(names, c); ok {
			if contains(some, a) && contains(others, b) || contains(some, b) && contains(others, a) {
				return true
			}
		}
	}
	return false
}

// equality returns the columns that a condition compares, if they are of the same family.
func equality(names *scope, condition node) (a, b place, ok bool) {
	if kind(condition) != "COMPARE_EQUAL" {
		return a, b, false
	}
	a, left := placeOf(names, child(condition, "left"))
	b, right := placeOf(names, child(condition, "right"))
	return a, b, left && right && a.family() != "" && a.family() == b.family()
}

// family returns the family of a column's type. Columns of different ones are compared by
// values that are not theirs: two numbers may be equal to the same DOUBLE, and differ.
func (p place) family() string {
	c, _ := p.ref.column(p.column)
	return families[c.kind]
}

func placeOf(names *scope, n node) (place, bool) {
	if kind(n) != "COLUMN_REF" {
		return place{}, false
	}
	p, found, err := names.find(n)
	return p, found && err == nil
}

func contains(places []place, p place) bool {
	for _, q := range places {
		if p == q {
			return true
		}
	}
	return false
}

// classes are sets of columns that have the same value: a disjoint-set forest.
type classes map[place]place

func equalities(names *scope, conditions []node) classes {
	c := make(classes)
	for _, condition := range conditions {
		if a, b, ok := equality(names, condition); ok {
			c.join(a, b)
		}
	}
	return c
}

func (c classes) root(p place) place {
	for {
		parent, ok := c[p]
		if !ok || parent == p {
			return p
		}
		p = parent
	}
}

func (c classes) join(a, b place) {
	for _, p := range []place{a, b} {
		if _, ok := c[p]; !ok {
			c[p] = p
		}
	}
	c[c.root(a)] = c.root(b)
}

// meet reports whether two sets have columns with the same value.
func (c classes) meet(some, others []place) bool {
	for _, a := range some {
		for _, b := range others {
			if c.root(a) == c.root(b) {
				return true
			}
		}
	}
	return false
}

// with returns the columns, and all that have the value of one of them.
func (c classes) with(some []place) []place {
	all := some
	for p := range c {
		if !contains(all, p) && c.meet(some, []place{p}) {
			all = append(all, p)
		}
	}
	return all
}
