package planner

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Rows that tasks have, and how they are sent.

// relation is rows that tasks have: the result of a query that each task runs.
type relation struct {
	table   string // if the query only reads a table
	query   string
	columns []column
	divided bool   // whether each row is in one task; otherwise each task has all
	key     string // the column by whose hash they are divided, or ""
}

// from returns the relation as in FROM.
func (r *relation) from() string {
	if r.table != "" {
		return duck.Identifier(r.table)
	}
	return "(" + r.query + ")"
}

// reference returns the relation as a node of FROM.
func (p *planner) reference(ctx context.Context, r relation, alias string) (node, error) {
	query := "SELECT * FROM " + r.from() + " AS " + duck.Identifier(alias)
	tree, err := p.parse(ctx, query)
	return child(tree, "from_table"), err
}

// exchange adds a stage, unless there is the same already, and returns what it brings.
func (p *planner) exchange(ctx context.Context, name, query string, to To, column string) (relation, error) {
	id := fmt.Sprint(to, column, " ", query)
	if rel, ok := p.sent[id]; ok {
		return rel, nil
	}
	columns, err := p.describe(ctx, query)
	if err != nil {
		return relation{}, err
	}
	if _, err := width(columns); err != nil {
		return relation{}, err
	}
	name = unique(p.phases, name)
	table := unique(p.taken, name+map[To]string{All: "_all", Hash: "_by_" + column, Range: "_in_order"}[to]) +
		string(p.mark)
	if err := p.conn.Exec(ctx, fmt.Sprintf("CREATE VIEW %s AS %s", duck.Identifier(table), query)); err != nil {
		return relation{}, err
	}
	p.stages = append(p.stages, Stage{name, query, to, table, column})
	rel := relation{
		table: table, query: "SELECT " + identifiers(columns) + " FROM " + duck.Identifier(table),
		columns: columns, divided: to != All,
	}
	if to == Hash {
		rel.key = column
	}
	p.tables[table] = rel
	rel, err = p.restored(ctx, rel)
	if err != nil {
		return relation{}, err
	}
	p.sent[id] = rel
	return rel, nil
}

// restored gives columns the types back that they do not have on the wire. Arrow has no HUGEINT, and a
// column of DuckDB's type NULL, such as NULL or min(NULL), arrives as INTEGER: a text could no longer be
// compared with it.
func (p *planner) restored(ctx context.Context, r relation) (relation, error) {
	untyped, err := p.untyped(ctx, r)
	if err != nil {
		return r, err
	}
	outputs := make([]string, len(r.columns))
	changed := false
	for i, c := range r.columns {
		outputs[i] = duck.Identifier(c.name)
		value := ""
		switch {
		case c.kind == "HUGEINT":
			value = "CAST(" + outputs[i] + " AS HUGEINT)"
		case untyped[c.name]:
			value = "NULL"
		default:
			continue
		}
		outputs[i], changed = value+" AS "+outputs[i], true
	}
	if changed {
		r.query = "SELECT " + strings.Join(outputs, ", ") + " FROM " + duck.Identifier(r.table)
		r.table = ""
	}
	return r, nil
}

// untyped returns the columns of a relation whose type is NULL. DESCRIBE reports these as INTEGER, and
// typeof tells them apart.
func (p *planner) untyped(ctx context.Context, r relation) (map[string]bool, error) {
	var names, types []string
	for _, c := range r.columns {
		if c.kind == "INTEGER" {
			names, types = append(names, c.name), append(types, "typeof(t."+duck.Identifier(c.name)+")")
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	// The outer join has one row, without computing any of the relation.
	query := "SELECT " + strings.Join(types, ", ") + " FROM (SELECT 1) LEFT JOIN (SELECT * FROM " + r.from() +
		" LIMIT 0) AS t ON true"
	_, rows, err := p.conn.Text(ctx, query)
	if err != nil {
		return nil, err
	}
	untyped := make(map[string]bool)
	for i, name := range names {
		untyped[name] = rows[0][i] == `"NULL"`
	}
	return untyped, nil
}

// unique returns a name that a stage or a table can have, and that is not taken yet.
func unique(taken map[string]bool, name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
	if name[0] < 'a' {
		name = "x" + name
	}
	for n, base := 2, name; taken[name]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	taken[name] = true
	return name
}

// toAll brings a relation to all tasks, if they do not have it.
func (p *planner) toAll(ctx context.Context, name string, r relation) (relation, error) {
	if !r.divided {
		return r, nil
	}
	return p.exchange(ctx, name, r.query, All, "")
}

// send sends the tables of a block as a layout has them.
func (p *planner) send(ctx context.Context, b *block, l layout) error {
	for _, leaf := range b.leaves {
		column, divided := l[leaf]
		if !leaf.rel.divided && leaf.rel.query == "" { // Every task computes it.
			continue
		}
		rel := leaf.rel
		if rel.divided && !(divided && column == rel.key) {
			query, _, err := p.leafQuery(ctx, leaf)
			if err != nil {
				return err
			}
			to := All
			if divided {
				to = Hash
			}
			rel, err = p.exchange(ctx, leaf.ref.alias, query, to, column)
			if err != nil {
				return err
			}
		}
		n, err := p.reference(ctx, rel, leaf.ref.name)
		if err != nil {
			return err
		}
		become(leaf.node, n)
	}
	return nil
}
