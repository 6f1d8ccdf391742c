//go:build duckdb_arrow

package difftest_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pleach-go/pleach/sql/internal/difftest"
)

// perTables is how many queries run over the tables of a seed.
const perTables = 100

// number returns the number that an environment variable has, or another one.
func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Random queries have the result of one DuckDB, or are refused (case 85). make sqlfuzz runs more of
// them.
func TestRandomQueries(t *testing.T) {
	const short = 400
	queries, seed := number(t, "QUERIES", short), number(t, "SEED", 1)
	c := difftest.NewCount()
	began := time.Now()
	done := uint64(0)
	for ; done < queries; done += perTables {
		if queries == short && time.Since(began) > time.Minute {
			break
		}
		runSeed(t, seed+done/perTables, min(perTables, queries-done), c)
		if done%1000 == 0 {
			t.Logf("seed %d, %v; %v", seed+done/perTables, time.Since(began).Round(time.Second), c)
		}
	}
	t.Logf("%d queries from seed %d in %v; %v", done, seed, time.Since(began).Round(time.Second), c)
	t.Log("\n" + c.Details())
	if all, refused := c.Valid(); all >= 300 && refused*4 > all {
		t.Errorf("of %d queries that one DuckDB runs, %d are refused: too many for the comparison to say much", all, refused)
	}
}

// runSeed compares the first queries of a seed.
func runSeed(t *testing.T, seed, queries uint64, counted *difftest.Count) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	tables := difftest.NewTables(r)
	c, err := difftest.NewCluster(t.Context(), tables)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	defer c.Close()
	for n := range queries {
		q := difftest.Generate(rand.New(rand.NewPCG(seed, n+1)), tables)
		judge := func(query string) (difftest.Verdict, string, string) {
			other := q
			other.SQL = query
			return c.Judge(t.Context(), other, rand.New(rand.NewPCG(seed, n+1)))
		}
		verdict, why, _ := judge(q.SQL)
		counted.Add(q.SQL, verdict, why)
		if verdict != difftest.Failed && verdict != difftest.Different {
			continue
		}
		small := q.SQL
		if !q.Open {
			q.Ordered, q.Whole = nil, "" // A smaller query may have fewer columns, and no order.
			if v, _, _ := judge(q.SQL); v == verdict {
				small = c.Shrink(t.Context(), q.SQL, func(query string) bool { v, _, _ := judge(query); return v == verdict })
			}
		}
		_, whySmall, stages := judge(small)
		t.Errorf("seed %d, query %d: %.2000s\n%.500s\nsmaller: %.2000s\n%.500s\n%.2000s\nreplay: make sqlfuzz SEED=%d QUERIES=%d", seed, n, q.SQL, why, small, whySmall, stages, seed, n+1)
	}
}
