package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Stage is a query that every task runs on its rows, and where the result goes.
type Stage struct {
	Name, Query string
	To          To
	Table       string // of the rows that were sent, with All, Hash and Range
	Column      string // with Hash and Range
}

// To is where the result of a stage goes.
type To int

// All is to every task, Hash and Range to the task of a column. Result is where the query is
// run once, over tables that all tasks have. Write is a file for each task.
const (
	All To = iota
	Hash
	Range
	Result
	Write
)

// Error says why there is no plan for a query, and what to write instead.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Question is a query to be planned.
type Question struct {
	Query string
	// Tables are the names of the tables, of which the connection has a task's part.
	Tables []string
	// Tasks is the number of tasks.
	Tasks int
	// Write says that each task writes a part of the result.
	Write bool

	// Random, if not nil, chooses among the plans that are right, for tests. Otherwise the
	// cheapest is taken.
	Random *rand.Rand
}

// Plan returns the stages of a query. It creates views in the database of the connection.
func Plan(ctx context.Context, conn *duck.Conn, q Question) ([]Stage, error) {
	p := newPlanner(conn, &q)
	tree, err := p.parse(ctx, q.Query)
	if err != nil {
		return nil, refuse("%v", err)
	}
	// DuckDB explains best what is wrong with the query itself, and quotes it as it was written.
	if err := conn.Check(ctx, q.Query); err != nil {
		return nil, refuse("%v", err)
	}
	if err := p.expand(tree, nil); err != nil {
		return nil, err
	}
	if err := understand(tree); err != nil {
		return nil, err
	}
	want, err := p.describe(ctx, q.Query)
	if err != nil {
		return nil, refuse("%s", duck.WithoutExcerpt(err.Error()))
	}
	if err := p.prepare(ctx, tree, &q); err != nil {
		return nil, err
	}
	answer, err := p.plan(ctx, tree)
	if err == nil {
		err = p.end(ctx, answer, want, q.Write)
	}
	if _, refused := errors.AsType[*Error](err); err != nil && !refused && ctx.Err() == nil {
		err = refuse("the query is not understood: write TABLE.COLUMN for its columns, and parts of it as subqueries in FROM. DuckDB's error for a part of its plan: %s", duck.WithoutExcerpt(err.Error()))
	}
	return p.stages, err
}

// planner has what is planned so far.
type planner struct {
	reader
	tasks  int
	random *rand.Rand // nil: the cheapest plan
	mark   mark
	source []string
	tables map[string]relation // by name in lower case
	stages []Stage
	sent   map[string]relation // by query and destination
	phases map[string]bool     // names that stages have
	taken  map[string]bool     // names that tables have

	template       node // a SELECT without FROM
	star           node
	columnTemplate node
	one            node // a constant
}

func newPlanner(conn *duck.Conn, q *Question) *planner {
	return &planner{
		reader: reader{conn}, tasks: q.Tasks, random: q.Random, source: slices.Sorted(slices.Values(q.Tables)),
		tables: make(map[string]relation), sent: make(map[string]relation), phases: make(map[string]bool),
		taken: make(map[string]bool),
	}
}

// prepare asks for the columns of the tables that a query reads, and chooses names.
func (p *planner) prepare(ctx context.Context, tree node, q *Question) error {
	var err error
	p.template, err = p.parse(ctx, "SELECT *, a, 1")
	if err != nil {
		return err
	}
	outputs := children(p.template, "select_list")
	p.star, p.columnTemplate, p.one = outputs[0], outputs[1], outputs[2]
	read := make(map[string]bool)
	each(tree, func(n node) bool {
		if kind(n) == "BASE_TABLE" {
			read[folded(text(n, "table_name"))] = true
		}
		return true
	})
	names := append([]string{q.Query}, q.Tables...)
	for _, name := range q.Tables {
		lower := folded(name)
		p.taken[lower] = true
		if !read[lower] {
			continue
		}
		columns, err := p.describe(ctx, "FROM "+duck.Identifier(name))
		if err != nil {
			return err
		}
		p.tables[lower] = relation{table: name, query: "FROM " + duck.Identifier(name), columns: columns, divided: true}
		for _, c := range columns {
			names = append(names, c.name)
		}
	}
	p.mark = newMark(names...)
	return nil
}

func (p *planner) sourceTables() string { return strings.Join(p.source, ", ") }

// expression parses an expression.
func (p *planner) expression(ctx context.Context, text string) (node, error) {
	tree, err := p.parse(ctx, "SELECT "+text)
	if err != nil {
		return nil, err
	}
	return children(tree, "select_list")[0], nil
}

// expand writes the queries of WITH where their names are.
func (p *planner) expand(v any, with map[string]node) (err error) {
	each(v, func(n node) bool {
		if err != nil {
			return false
		}
		if cte := child(n, "cte_map"); cte != nil && len(children(cte, "map")) > 0 {
			inner := maps.Clone(with)
			if inner == nil {
				inner = make(map[string]node)
			}
			for _, entry := range children(cte, "map") {
				query := child(entry, "value")
				if err = p.expand(query, inner); err != nil {
					return false
				}
				if kind(child(child(query, "query"), "node")) == "RECURSIVE_CTE_NODE" {
					err = refuse("WITH RECURSIVE is not understood: write the steps as queries of their own")
					return false
				}
				inner[folded(text(entry, "key"))] = query
			}
			cte["map"] = []any{}
			err = p.expand(n, inner)
			return false
		}
		if name := text(n, "table_name"); kind(n) == "BASE_TABLE" && text(n, "schema_name") == "" {
			if query, ok := with[folded(name)]; ok {
				alias := text(n, "alias")
				if alias == "" {
					alias = name
				}
				become(n, node{
					"type": "SUBQUERY", "alias": alias, "subquery": query["query"],
					"column_name_alias": query["aliases"],
				})
				return false
			}
		}
		return true
	})
	return err
}

// query plans a subquery.
func (p *planner) query(ctx context.Context, tree node) (relation, error) {
	a, err := p.plan(ctx, clone(tree))
	if err != nil || len(a.columns) == a.visible {
		return a.relation, err
	}
	shown := a.columns[:a.visible]
	r := relation{query: "SELECT " + identifiers(shown) + " FROM " + a.from(), columns: shown, divided: a.divided}
	if slices.ContainsFunc(shown, func(c column) bool { return c.name == a.key }) {
		r.key = a.key
	}
	return r, nil
}

// answer is the result of a query: in an order, by columns of which some may not be visible.
type answer struct {
	relation
	visible int
	order   string // as in ORDER BY, of columns by their names alone
}

// plan plans a query.
func (p *planner) plan(ctx context.Context, tree node) (answer, error) {
	switch kind(tree) {
	case "SELECT_NODE":
		return p.selects(ctx, tree)
	case "SET_OPERATION_NODE":
		return p.combines(ctx, tree)
	}
	return answer{}, refuse("%s is not understood: write SELECT", kind(tree))
}

// combines plans UNION, EXCEPT and INTERSECT: over results that all tasks have.
func (p *planner) combines(ctx context.Context, tree node) (answer, error) {
	sides := children(tree, "children")
	for _, key := range []string{"left", "right"} {
		if side := child(tree, key); side != nil {
			sides = append(sides, side)
		}
	}
	for _, side := range sides {
		rel, err := p.query(ctx, side)
		if err == nil {
			rel, err = p.toAll(ctx, "side", rel)
		}
		if err != nil {
			return answer{}, err
		}
		other, err := p.parse(ctx, rel.query)
		if err != nil {
			return answer{}, err
		}
		become(side, other)
	}
	rel, err := p.finish(ctx, tree, relation{})
	return answer{relation: rel, visible: len(rel.columns)}, err
}

// selects plans a SELECT.
func (p *planner) selects(ctx context.Context, tree node) (answer, error) {
	b, err := p.bind(ctx, tree, nil)
	if err != nil {
		return answer{}, err
	}
	l, s, err := p.choose(ctx, b)
	if err != nil {
		return answer{}, err
	}
	if err := p.send(ctx, b, l); err != nil {
		return answer{}, err
	}
	if !s.divided {
		rel, err := p.finish(ctx, tree, relation{})
		return answer{relation: rel, visible: len(rel.columns)}, err
	}
	m, err := p.takeModifiers(b)
	if err != nil {
		return answer{}, err
	}
	a := answer{visible: len(b.outputs), order: m.order()}
	if b.aggregates() && !b.groupedBy(s) {
		a.relation, err = p.aggregate(ctx, b)
	} else {
		a.relation, err = p.finish(ctx, tree, relation{divided: true})
		a.key = b.shown(s)
	}
	if err == nil {
		err = p.modify(ctx, &a, m)
	}
	return a, err
}

// groupedBy reports whether all rows of a group are in one task.
func (b *block) groupedBy(s spread) bool {
	for _, g := range children(b.node, "group_expressions") {
		if at, ok := placeOf(b.scope, g); ok && contains(s.keys, at) {
			return true
		}
	}
	return false
}

// shown returns the output by whose hash rows are divided, or "".
func (b *block) shown(s spread) string {
	for _, o := range b.outputs {
		if at, ok := placeOf(b.scope, o.expr); ok && contains(s.keys, at) {
			return o.name
		}
	}
	return ""
}

// integer returns the number that a constant is, and whether it is one.
func integer(n node) (int, bool) {
	v, ok := child(n, "value")["value"].(json.Number)
	if !ok || kind(n) != "VALUE_CONSTANT" {
		return 0, false
	}
	id := text(child(child(n, "value"), "type"), "id")
	i, err := strconv.Atoi(v.String())
	return i, err == nil && (id == "INTEGER" || id == "BIGINT")
}
