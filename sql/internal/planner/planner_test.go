//go:build duckdb_arrow

package planner_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/planner"
)

// Plans are run here without processes: a task is a schema of one DuckDB, and an exchange is
// a few statements.

// tables are those of the tests: by name the rows, as SQL. Some keys have no partner, some are
// there several times, and some are NULL.
var tables = map[string]string{
	"item":  "SELECT i::INTEGER AS id, (i % 37)::BIGINT AS k, (i * 7919 % 101)::INTEGER AS v, (i % 11)::DECIMAL(9,2) / 4 AS d, 'n' || (i % 5) AS name, CASE WHEN i % 9 > 0 THEN i % 13 END AS n, DATE '2026-01-01' + (i % 40)::INTEGER AS day FROM range(400) t(i)",
	"head":  "SELECT i::BIGINT AS k, 'h' || i AS label, (i % 4)::INTEGER AS class, i::DOUBLE / 8 AS weight FROM range(45) t(i)",
	"class": "SELECT i::INTEGER AS class, 'c' || i AS title FROM range(4) t(i)",
	"few":   "SELECT i::INTEGER AS id, CASE WHEN i < 5 THEN i END AS n FROM range(7) t(i)",
}

const tasks = 3

type cluster struct {
	t    *testing.T
	conn *duck.Conn
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	db, err := duck.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{t, conn}
	c.exec("CREATE SCHEMA whole")
	for name, rows := range tables {
		c.exec("CREATE TABLE whole.%s AS %s", name, rows)
		for task := range tasks {
			c.exec("CREATE SCHEMA IF NOT EXISTS task_%d", task)
			c.exec("CREATE TABLE task_%d.%s AS FROM whole.%s WHERE rowid %% %d = %d", task, name, name, tasks, task)
		}
	}
	return c
}

func (c *cluster) exec(format string, args ...any) {
	c.t.Helper()
	statement := fmt.Sprintf(format, args...)
	if err := c.conn.Exec(c.t.Context(), statement); err != nil {
		c.t.Fatalf("%s: %v", statement, err)
	}
}

// rows returns the rows of a query where tables of a schema come first.
func (c *cluster) rows(schema, query string) [][]string {
	c.t.Helper()
	c.exec("SET search_path = '%s,main'", schema)
	_, rows, err := c.conn.Text(c.t.Context(), query)
	if err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return rows
}

// planning is a DuckDB that has the tables as task 0 has them.
type planning struct{ *cluster }

func newPlanning(t *testing.T) planning {
	t.Helper()
	c := newCluster(t)
	for name := range tables {
		c.exec("CREATE TABLE main.%s AS FROM task_0.%s", name, name)
	}
	return planning{c}
}

func (p planning) plan(query string, set func(*planner.Question)) ([]planner.Stage, error) {
	q := planner.Question{Query: query, Tables: slices.Sorted(maps.Keys(tables)), Tasks: tasks}
	set(&q)
	stages, err := planner.Plan(p.t.Context(), p.conn, q)
	for _, s := range slices.Backward(stages) {
		if s.Table != "" {
			p.exec("DROP VIEW %s", s.Table)
		}
	}
	return stages, err
}

// run runs stages, and returns the rows of the last one.
func (c *cluster) run(stages []planner.Stage) [][]string {
	c.t.Helper()
	for _, s := range stages {
		switch s.To {
		case planner.Result:
			return c.rows("main", s.Query)
		case planner.All:
			for task := range tasks {
				c.exec("SET search_path = 'task_%d,main'", task)
				into := "INSERT INTO main." + s.Table
				if task == 0 {
					into = "CREATE OR REPLACE TABLE main." + s.Table + " AS"
				}
				c.exec("%s %s", into, s.Query)
			}
		case planner.Hash:
			for to := range tasks {
				c.exec("SET search_path = 'task_0,main'")
				c.exec("CREATE OR REPLACE TABLE task_%d.%s AS FROM (%s) LIMIT 0", to, s.Table, s.Query)
				for from := range tasks {
					c.exec("SET search_path = 'task_%d,main'", from)
					c.exec("INSERT INTO task_%d.%s FROM (%s) WHERE coalesce(hash(%s) %% %d, 0) = %d", to, s.Table, s.Query, s.Column,
						tasks, to)
				}
			}
		case planner.Write:
			var all [][]string
			for task := range tasks {
				all = append(all, c.rows(fmt.Sprintf("task_%d", task), s.Query)...)
			}
			return all
		}
	}
	c.t.Fatal("there is no last stage")
	return nil
}

// Queries whose plans give the rows that one DuckDB gives.
var queries = []string{
	"SELECT count(*) FROM item",
	"SELECT count(*), count(n), sum(v), min(day), max(name), avg(v) FROM item",
	"SELECT sum(d), avg(d) FROM item WHERE v > 50",
	"SELECT sum(v) FROM item WHERE false",
	"SELECT count(*) FROM item WHERE false",
	"SELECT name, count(*) AS c, sum(v) AS s FROM item GROUP BY name ORDER BY name",
	"SELECT n, count(*) FROM item GROUP BY n ORDER BY n NULLS FIRST",
	"SELECT name AS title, sum(v) * 2 + 1 FROM item GROUP BY title HAVING sum(v) > 100 ORDER BY 2 DESC",
	"SELECT v % 10 AS digit, count(*) FROM item GROUP BY 1 ORDER BY digit",
	"SELECT count(DISTINCT n), count(DISTINCT name) FROM item",
	"SELECT DISTINCT ON (k) v, id % 3 AS k FROM item ORDER BY k, id", // k is a column and an output
	"SELECT DISTINCT ON (2) v, id % 3 AS m FROM item ORDER BY m, id",
	"SELECT name, count(DISTINCT n) AS a, sum(v) AS b, median(v) AS c FROM item GROUP BY name ORDER BY name",
	"SELECT name, sum(v) FILTER (WHERE n > 3) FROM item GROUP BY name ORDER BY name",
	"SELECT DISTINCT name, n FROM item ORDER BY name, n",
	"SELECT DISTINCT n FROM item ORDER BY n LIMIT 3",
	"SELECT id, v FROM item ORDER BY v DESC, id LIMIT 5",
	"SELECT id, v FROM item ORDER BY v DESC, id LIMIT 5 OFFSET 7",
	"SELECT id FROM item ORDER BY v, id LIMIT 2 OFFSET 20",
	"SELECT id FROM item ORDER BY id DESC LIMIT 0",
	"SELECT id FROM few ORDER BY id OFFSET 3",
	"SELECT id FROM item WHERE k = 3 ORDER BY v, id",
	"SELECT * FROM item WHERE v < 3 ORDER BY id",
	"SELECT i.*, label FROM item i JOIN head h ON i.k = h.k WHERE v < 10 ORDER BY id",
	"SELECT label, sum(v) FROM item, head WHERE item.k = head.k GROUP BY label ORDER BY label",
	"SELECT h.k, sum(v) AS s FROM item i, head h WHERE i.k = h.k GROUP BY h.k ORDER BY s, 1",
	"SELECT title, count(*) FROM item JOIN head USING (k) JOIN class USING (class) GROUP BY title ORDER BY title",
	"SELECT k, count(*) FROM item JOIN head USING (k) GROUP BY k ORDER BY k",
	"SELECT label, count(id) FROM head LEFT JOIN item ON head.k = item.k AND v > 60 GROUP BY label ORDER BY label",
	"SELECT label, count(id) FROM item RIGHT JOIN head ON head.k = item.k GROUP BY label ORDER BY label",
	"SELECT count(*) FROM head LEFT JOIN item ON head.k = item.k WHERE item.id IS NULL",
	"SELECT count(*) FROM item FULL JOIN few ON item.n = few.n",
	"SELECT a.label, b.label FROM head a, head b WHERE a.k = b.k + 1 AND a.class = b.class ORDER BY 1, 2",
	"SELECT a.class, count(*) FROM head a, head b WHERE a.class = b.class GROUP BY a.class ORDER BY 1",
	"SELECT a.k, count(*) FROM item a JOIN item b ON a.k = b.k LEFT JOIN item c ON b.id = c.id AND c.v > 50 GROUP BY a.k ORDER BY a.k",
	"SELECT x.id, y.n FROM few x LEFT JOIN item i ON x.id = i.id LEFT JOIN few y ON i.n = y.n ORDER BY 1, 2",
	"SELECT count(*) FROM item WHERE EXISTS (SELECT * FROM head WHERE head.k = item.k AND class = 1)",
	"SELECT count(*) FROM head WHERE NOT EXISTS (SELECT * FROM item WHERE item.k = head.k AND v > 20)",
	"SELECT id FROM item i WHERE v > (SELECT avg(v) FROM item j WHERE j.k = i.k) ORDER BY id",
	"SELECT id FROM item i WHERE v > (SELECT avg(v) FROM item j WHERE j.v < i.v + 3) ORDER BY id",
	"SELECT id FROM item WHERE v > (SELECT avg(v) FROM item) ORDER BY id",
	"SELECT id FROM item WHERE k IN (SELECT k FROM head WHERE class = 2) ORDER BY id",
	"SELECT count(*) FROM item WHERE n NOT IN (SELECT n FROM few)",
	"SELECT count(*) FROM item WHERE n NOT IN (SELECT n FROM few WHERE n IS NOT NULL)",
	"SELECT name, (SELECT max(title) FROM class) AS t, count(*) FROM item GROUP BY name ORDER BY name",
	"SELECT name, sum(v) AS s FROM item GROUP BY name HAVING sum(v) > (SELECT sum(v) / 6 FROM item) ORDER BY s",
	"SELECT c, count(*) FROM (SELECT k, count(*) FROM item GROUP BY k) AS t (k, c) GROUP BY c ORDER BY c",
	"SELECT label, c FROM head, (SELECT k, count(*) AS c FROM item GROUP BY k) AS t WHERE t.k = head.k ORDER BY label",
	"SELECT class, sum(w) FROM (SELECT class, v * 2 AS w FROM item, head WHERE item.k = head.k AND v > 7) AS t GROUP BY class ORDER BY class",
	"SELECT t.id FROM (SELECT id, k AS kk FROM item WHERE v < 30) AS t JOIN (SELECT k AS hk FROM head WHERE class > 0) AS u ON t.kk = u.hk ORDER BY 1",
	"WITH r AS (SELECT k, sum(v) AS s FROM item GROUP BY k) SELECT label, s FROM head, r WHERE head.k = r.k AND s = (SELECT max(s) FROM r)",
	"WITH a AS (SELECT * FROM item WHERE v > 20), b AS (SELECT k, count(*) AS c FROM a GROUP BY k) SELECT sum(c) FROM b",
	"SELECT v FROM item WHERE v < 4 UNION SELECT id FROM few ORDER BY 1",
	"SELECT count(*) FROM (SELECT id FROM item UNION ALL SELECT id FROM few) t",
	"SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM item ORDER BY id",
	"SELECT name, n, sum(v) FROM item GROUP BY ROLLUP (name, n) ORDER BY ALL",
	"SELECT day, sum(v) FROM item GROUP BY day ORDER BY day LIMIT 4",
	"SELECT id FROM (SELECT id, v FROM item ORDER BY v DESC, id LIMIT 10) t ORDER BY id",
	"SELECT i.id, r FROM item i, range(2) t(r) WHERE i.v = 5 ORDER BY i.id, r",
	"SELECT 1 + 1 AS two",
	"SELECT count(*) FROM item a, item b WHERE a.id = b.id AND a.v > b.n",
	"SELECT string_agg(label, ',' ORDER BY k) FROM head WHERE class = 1",
	"SELECT bool_and(v > 0), bool_or(v > 100) FROM item",
	"SELECT item.name, head.weight FROM item, head WHERE item.k = head.weight ORDER BY item.id",
	"SELECT sum(v)::DOUBLE / count(*) AS x FROM item",
	"SELECT id AS a, id AS b, v AS id FROM item ORDER BY id, a LIMIT 3",
	"SELECT CASE WHEN v > 50 THEN 'high' ELSE 'low' END AS level, count(*) FROM item GROUP BY level ORDER BY level",
	"SELECT sum(CASE WHEN name = 'n1' THEN v ELSE 0 END) / sum(v) FROM item",
	"FROM few ORDER BY id",
	"SELECT n + 100 AS n, count(*) FROM item GROUP BY n HAVING n > 5 ORDER BY 1",
	"SELECT name, sum(v) AS total FROM item GROUP BY name HAVING total > 3900 ORDER BY name",
	"SELECT date_trunc('month', day) AS day, count(*) FROM item GROUP BY day ORDER BY 1, 2",
	"SELECT id, -v AS v FROM item WHERE v > 90 ORDER BY v + 0, id LIMIT 5",
	"SELECT v * 2 AS w, w + 1 AS x FROM item WHERE w > 190 ORDER BY x, w",
	"SELECT count(*) FROM item i WHERE v > 50 OR EXISTS (SELECT * FROM item j WHERE j.k = i.k AND j.v > i.v + 90)",
	"SELECT count(*) FROM head h WHERE class IN (SELECT i.v FROM item i WHERE i.k = h.k)",
	"SELECT h.label, x.id FROM head h LEFT JOIN (SELECT * FROM item WHERE v > 70) x ON h.k = x.k AND x.n > 2 ORDER BY 1, 2",
	"SELECT count(*), count(b.id), count(c.id) FROM item a LEFT JOIN item b ON a.n = b.n LEFT JOIN item c ON b.k = c.k AND a.k = c.k",
	"SELECT count(*) FROM few i, head h WHERE NOT EXISTS (SELECT * FROM few f WHERE f.n = i.n AND f.n = h.k)",
	"SELECT count(*) FROM item i, head h WHERE i.v > 97 AND NOT EXISTS (SELECT * FROM item f WHERE f.k = i.k AND f.k = h.k AND f.v > 50)",
	"SELECT name, v % 2 AS odd, count(*) AS c, sum(v) + 1 FROM item GROUP BY ALL ORDER BY name, odd",
	"SELECT sum(v) FROM item GROUP BY ALL",
	"SELECT f.id, count(i.id) FROM few f LEFT JOIN item i ON f.n = i.n LEFT JOIN head h ON i.k = h.k GROUP BY f.id ORDER BY f.id",
	"SELECT i.k, max(h.label) FROM item i SEMI JOIN few f ON i.n = f.n JOIN head h ON h.k = i.k GROUP BY i.k ORDER BY i.k",
	"SELECT count(*) FROM item i ANTI JOIN few f ON i.n = f.n",
	"SELECT i.name, min(i.v) AS a, max(f.n) FROM item i, few f WHERE i.n = f.n AND i.id + f.id > 30 GROUP BY i.name ORDER BY a, i.name",
	"SELECT stddev_samp(v) > 0, count(DISTINCT v % 7) FROM item",
	"SELECT name, count(*) FROM item GROUP BY name ORDER BY count(*) DESC, name LIMIT 2",
	"SELECT name FROM item GROUP BY name ORDER BY sum(v) DESC, name",
	"SELECT sum(s) FROM (SELECT k, sum(v) AS s FROM item GROUP BY k HAVING sum(v) > 100) t WHERE k > 3",
	"SELECT t.name, u.name FROM (SELECT DISTINCT name FROM item) t, (SELECT DISTINCT name FROM item) u WHERE t.name < u.name ORDER BY 1, 2",
	"SELECT id FROM item EXCEPT SELECT id FROM item WHERE v > 3 ORDER BY id",
	"SELECT count(*) FROM item WHERE (SELECT count(*) FROM few WHERE few.n = item.n) > 0",
	"SELECT k, (SELECT max(label) FROM head WHERE head.k = item.k) AS l FROM item WHERE v = 7 ORDER BY id",
	// Case 85: names like those of the planner, constants and columns that are there twice in GROUP BY.
	"SELECT 2 AS two, name, count(*) AS n, sum(v) AS v FROM item GROUP BY ALL ORDER BY name",
	"SELECT name, 1 AS version, sum(v) AS v FROM item GROUP BY ALL ORDER BY name",
	"SELECT name, count(*) AS n, sum(v) AS v FROM item GROUP BY name, name ORDER BY 1, 2",
	"SELECT name, name AS same, count(*) AS n FROM item GROUP BY ALL ORDER BY 1, 3",
	"SELECT count(*) AS groups, sum(n) AS n FROM (SELECT name, count(*) AS n FROM item GROUP BY 1, name) s",
	"SELECT id AS order_1 FROM item ORDER BY v DESC, id LIMIT 3",
	"SELECT id AS order1_p FROM item ORDER BY v DESC, id LIMIT 3",
	`SELECT id + 0, v FROM (SELECT id, v, -id AS "column" FROM item) s ORDER BY "column" LIMIT 3`,
	"SELECT g0, a1, g0_p FROM (SELECT name AS g0, max(k) AS a1, min(v) AS g0_p FROM item GROUP BY name) AS parts ORDER BY g0",
	"SELECT DISTINCT 2 AS two, k % 3 AS a, n FROM item ORDER BY ALL LIMIT 5",
	"SELECT id, (SELECT max(c) FROM (SELECT k, count(*) AS c FROM item GROUP BY k) t WHERE t.k = few.id) AS m FROM few ORDER BY id",
	"SELECT id_1 FROM (SELECT id, v AS id, k AS id_1 FROM item) s ORDER BY 1 LIMIT 4",
	`SELECT "(v + 1)", "(v + 1)_1" FROM (SELECT v + 1, k AS "(v + 1)" FROM item) s ORDER BY ALL LIMIT 4`,
	"SELECT n, count(*) FROM item GROUP BY n HAVING count(*) > (SELECT count(*) FROM item AS few, few AS item WHERE item.n = few.n) ORDER BY n",
	"SELECT id FROM few WHERE id < 3 ORDER BY id; -- the end",
	// Case counts outside of ASCII.
	`SELECT "é", "É" FROM (SELECT id AS "é", v AS "É" FROM item) AS t ORDER BY ALL LIMIT 5`,
	`SELECT "é", "É" FROM (SELECT id, v AS "é" FROM item) AS t("É") ORDER BY ALL LIMIT 5`,
	// DuckDB parses list(x ORDER BY x) as list_sort(list(x)).
	"SELECT name, CAST(list(id ORDER BY id)[1:3] AS VARCHAR) AS l FROM item GROUP BY name ORDER BY name",
	"SELECT name, CAST(list(DISTINCT v ORDER BY v DESC) FILTER (WHERE k > 1) AS VARCHAR) AS l FROM item GROUP BY name ORDER BY name",
	// Columns of type NULL, which are INTEGER when they are sent (seed 50129).
	"SELECT id FROM item WHERE NOT name >= (SELECT min(CAST(NULL AS VARCHAR) || 'a') FROM few) ORDER BY id",
	"SELECT id, typeof(m) FROM few, (SELECT max(NULL) AS m FROM item) t ORDER BY id",
	"SELECT v % 3 AS k, k AS w FROM item ORDER BY ALL", // k is a column and an output (seed 7000119)
	"SELECT NULL AS day FROM few UNION ALL SELECT day FROM item WHERE v = 5 ORDER BY day",
}

// The rows are those of one DuckDB, with their columns and in their order: by the plan that is
// chosen, and by others that the planner takes for right.
func TestPlansAreRight(t *testing.T) {
	c, p := newCluster(t), newPlanning(t)
	plans := make(map[string]bool)
	for _, query := range queries {
		want := c.rows("whole", query)
		for number := -1; number < 2; number++ {
			stages, err := p.plan(query, func(q *planner.Question) {
				if number >= 0 {
					q.Random = rand.New(rand.NewPCG(1, uint64(number)))
				}
			})
			if err != nil {
				t.Errorf("%s: %v", query, err)
				break
			}
			text := describe(stages)
			if plans[text] {
				continue
			}
			plans[text] = true
			if got := c.run(stages); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Errorf("%s\nis %v\nwant %v\nby %s", query, got, want, text)
			}
		}
	}
	t.Logf("%d plans of %d queries", len(plans), len(queries))
}

func describe(stages []planner.Stage) string {
	var b strings.Builder
	for _, s := range stages {
		fmt.Fprintf(&b, "\n%s: %s => %s %d(%s)", s.Name, s.Query, s.Table, s.To, s.Column)
	}
	return b.String()
}

// What is not sure to be right is refused, with a sentence that says what to write.
func TestRefusals(t *testing.T) {
	p := newPlanning(t)
	for query, says := range map[string]string{
		"SELECT random() FROM item":                          "random() has another value",
		"SELECT count(*) FROM item WHERE day < current_date": "write the value",
		"SELECT count(*) FROM item USING SAMPLE 10":          "takes other rows",
		"SELECT count(*) FROM item TABLESAMPLE 10%":          "takes other rows",
		"SELECT * EXCLUDE (v) FROM item":                     "write the columns out",
		"SELECT count(*) FROM item NATURAL JOIN head":        "NATURAL (ref_type) is not supported",
		"SELECT count(*) FROM item FULL JOIN head USING (k)": "write ON with both columns",
		"SELECT nothing FROM item":                           "nothing",
		"SELECT count(*) FROM nowhere":                       "nowhere",
		"SELECT count(*) FROM information_schema.tables":     "the source has class, few, head, item",
		"SELECT DISTINCT [v] AS l FROM item":                 "not sent between processes",
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT count(*) FROM r": "WITH RECURSIVE",
		"SELECT id FROM item ORDER BY id LIMIT 1.5":                                                            "LIMIT is not an integer",
		"SELECT id FROM item ORDER BY id LIMIT NULL":                                                           "LIMIT is not an integer",
		"SELECT id FROM item ORDER BY id LIMIT (SELECT 3)":                                                     "write a number",
		"SELECT id FROM (SELECT * FROM item ORDER BY v DESC) s LIMIT 3":                                        "write ORDER BY next to LIMIT",
		"WITH top AS (SELECT id FROM item ORDER BY v DESC) SELECT id FROM top LIMIT 3":                         "write ORDER BY next to LIMIT",
		"SELECT id FROM (SELECT id FROM item ORDER BY v, id LIMIT 9) s LIMIT 3":                                "write ORDER BY next to LIMIT",
		"SELECT id FROM (SELECT * FROM item ORDER BY v DESC) s":                                                "write it in the outermost query",
		"SELECT sum(v) FROM (SELECT v FROM item LIMIT 3) s":                                                    "takes any rows",
		"SELECT string_agg(name, ',') FROM item":                                                               "write string_agg(… ORDER BY …)",
		"SELECT row_number() OVER (PARTITION BY k) FROM item":                                                  "write OVER (… ORDER BY …)",

		"SELECT DISTINCT ON (k) k, v FROM item": "write ORDER BY",

		"SELECT 'a' AS a, count(*) FROM item GROUP BY ROLLUP ('a')": "a constant in ROLLUP",
		"SELECT 1 AS few FROM item AS few GROUP BY few":             "few may be a table or a name in SELECT",
		// seed 7000035
		"SELECT 1 AS rowid FROM item GROUP BY rowid":                                        "rowid is the number of a row",
		"SELECT id, (SELECT max(rowid) FROM few) FROM (SELECT id AS rowid, id FROM item) t": "rowid is the number of a row",
		// seed 7000200
		"SELECT id AS a, k AS a FROM item WHERE a > 3": "a is the name of several columns",
		"SELECT id AS a, k AS a FROM item ORDER BY a":  "a is the name of several columns",
		// seed 7000255: one DuckDB says 42
		"SELECT name AS n, 1 AS one FROM item GROUP BY n, 1":         "write the column of GROUP BY out",
		"SELECT geomean(v) FROM item":                                "geomean() is not supported",
		"SELECT count(*) FROM item WHERE name COLLATE nocase = 'N1'": "COLLATE is not supported",
		"SELECT count(*) FROM item POSITIONAL JOIN head":             "POSITIONAL",
		"SELECT list_transform([v], x -> x + 1) FROM item":           "not supported",
		"DELETE FROM item":                                           `only SELECT is supported, and the query is "DELETE FROM item"`,
		"SELECT nothing\n FROM item":                                 "LINE 1: SELECT nothing\n",
		"SELECT 1; SELECT 2":                                         "write one SELECT",
		"DESCRIBE item":                                              "not supported",
		"SELECT id FROM item WHERE id = $1":                          "not supported",
		"PIVOT item ON k USING sum(v)":                               "only SELECT is supported",
		"SELECT max((SELECT count(*) FROM few)) FROM item":           "write the subquery in FROM",
		"SELECT id FROM item UNION BY NAME SELECT k AS id FROM head": "not supported",
		"SELECT i.id FROM item i, LATERAL (SELECT label FROM head WHERE head.k = i.k)":           "not understood",
		"SELECT * FROM item ASOF JOIN head ON item.k >= head.k":                                  "ASOF",
		"SELECT lag(v) OVER (PARTITION BY k) FROM item":                                          "write OVER (… ORDER BY …)",
		"SELECT v FROM item i, unnest([i.v]) x":                                                  "write it in SELECT",
		"SELECT DISTINCT name FROM item ORDER BY v":                                              "DISTINCT",
		"SELECT id, (SELECT sum(v) FROM (SELECT v FROM head WHERE head.k = item.k) t) FROM item": "not understood",
	} {
		stages, err := p.plan(query, func(*planner.Question) {})
		if _, ok := errors.AsType[*planner.Error](err); !ok || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q; %s", query, err, says, describe(stages))
		}
	}
}

// Each task writes its part of a result that is in parts.
func TestPartsAreWritten(t *testing.T) {
	c, p := newCluster(t), newPlanning(t)
	write := func(q *planner.Question) { q.Write = true }
	for _, query := range []string{
		"SELECT id, v * 2 AS w FROM item WHERE v > 50",
		"SELECT label, id FROM item JOIN head USING (k)",
	} {
		stages, err := p.plan(query, write)
		if err != nil {
			t.Fatal(err)
		}
		got, want := c.run(stages), c.rows("whole", query)
		slices.SortFunc(got, slices.Compare)
		slices.SortFunc(want, slices.Compare)
		if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Errorf("%s\nis %v\nwant %v", query, got, want)
		}
	}
	for _, query := range []string{"SELECT sum(v) FROM item", "SELECT id FROM item ORDER BY id"} {
		if _, err := p.plan(query, write); err == nil || !strings.Contains(err.Error(), "--out") {
			t.Errorf("%s: %v", query, err)
		}
	}
}
