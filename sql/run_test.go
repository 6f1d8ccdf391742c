package sql_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/queries"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
	"github.com/pleach-go/pleach/transport/mem"
)

const members = 4

// directory has what tests share.
var directory string

func TestMain(m *testing.M) {
	var err error
	directory, err = os.MkdirTemp("", "pleach-sql-test-")
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(directory)
	os.Exit(code)
}

// generated is a small dataset.
var generated = sync.OnceValues(func() (*dataset.Dataset, error) {
	return tpchdata.Generate(context.Background(), tpchdata.Config{
		Scale: 0.01, Parts: members, Replicas: 2,
		Dir: filepath.Join(directory, "data"),
	})
})

// newData returns a small dataset, and a copy of its directory.
func newData(t *testing.T) (*dataset.Dataset, string) {
	t.Helper()
	if _, err := generated(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(directory, "data"))); err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d, dir
}

// aloneOn returns the rows of a query with one DuckDB over all parts.
func aloneOn(t *testing.T, d *dataset.Dataset, query string) (rows [][]string) {
	t.Helper()
	db, err := duck.Open(2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tables, err := d.Tables(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range tables {
		if err := c.Exec(t.Context(), duck.ParquetView(name, files)); err != nil {
			t.Fatal(err)
		}
	}
	_, rows, err = c.Text(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// death says which ranks die when they begin a phase.
type death struct {
	phase string
	ranks []int
}

// runJob runs a job whose processes are goroutines. It returns the result that was
// reported, which all survivors have.
func runJob(t *testing.T, j sql.Job, d death) *sql.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var reported []*sql.Result
	var all sync.WaitGroup
	for rank, w := range newWorlds(t, members) {
		all.Go(func() {
			db, err := sql.Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			defer w.Abort()
			j := j
			j.Phase = func(name string) {
				if name == d.phase && slices.Contains(d.ranks, rank) {
					runtime.Goexit() // Without a word: the deferred Abort is a crash.
				}
			}
			j.Done = func(r *sql.Result) {
				mu.Lock()
				defer mu.Unlock()
				reported = append(reported, r)
			}
			result, err := db.Run(ctx, w, j)
			if err == nil {
				err = w.Finalize(ctx)
			}
			if err != nil || result == nil {
				t.Errorf("rank %d: %v, %v", rank, result, err)
			}
		})
	}
	all.Wait()
	if len(reported) != 1 {
		t.Fatalf("%d results were reported", len(reported))
	}
	return reported[0]
}

// newWorlds returns the worlds of a job whose processes are goroutines.
func newWorlds(t *testing.T, size int) []*pleach.World {
	t.Helper()
	network, addresses := mem.NewNetwork(size, mem.Config{}), make([]string, size)
	for r := range addresses {
		addresses[r] = fmt.Sprintf("127.0.0.1:%d", r+1)
	}
	worlds := make([]*pleach.World, size)
	for r := range worlds {
		var err error
		worlds[r], err = pleach.NewWorld(t.Context(), pleach.Config{
			Addresses: addresses, Rank: r,
			Network: pleach.Network{Transport: network.Member(protocol.Rank(r))},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return worlds
}

// judge fails the test unless the result is that of one DuckDB.
func judge(t *testing.T, d *dataset.Dataset, query string, result *sql.Result) {
	t.Helper()
	if judged := tpchdata.Judge(d, query, result.Rows); judged != tpchdata.Equal {
		t.Errorf("the answer of %s is %s: %v\nwant %v", query, judged, result.Rows, d.Answers[query])
	}
}

// phasesOf returns the phases of a query in which a process can die.
func phasesOf(t *testing.T, d *dataset.Dataset, query string) []string {
	t.Helper()
	plan, err := sql.NewPlan(t.Context(), query, d, members, "")
	if err != nil {
		t.Fatal(err)
	}
	phases := []string{"plan"}
	for _, s := range plan.Stages {
		phases = append(phases, s.Name)
		if s.To.Kind != sql.ToResult {
			phases = append(phases, s.Name+".exchange")
		}
	}
	return phases
}

// Each query of TPC-H has the answer of one DuckDB: without a death, and with one in a phase
// that is another one for each query.
func TestQueries(t *testing.T) {
	d, _ := newData(t)
	for i, name := range queries.Names() {
		text, err := queries.SQL(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Answers[name]) == 0 {
			t.Errorf("%s has no rows at this scale, so it tests little", name)
		}
		phases := phasesOf(t, d, text)
		for _, death := range []death{{}, {phases[(i*7)%len(phases)], []int{i % members}}} {
			t.Run(fmt.Sprint(name, "/", death.phase, death.ranks), func(t *testing.T) {
				judge(t, d, name, runJob(t, sql.Job{Query: text, Source: d}, death))
			})
		}
	}
}

// The answer is the same, whichever process dies and in whichever phase of a query. In the last
// phases two die, the next owner of the first one's task among them.
func TestDeaths(t *testing.T) {
	d, _ := newData(t)
	text, err := queries.SQL("q3")
	if err != nil {
		t.Fatal(err)
	}
	phases := phasesOf(t, d, text)
	var deaths []death
	for i, phase := range phases {
		deaths = append(deaths, death{phase, []int{i % members}})
	}
	n := len(phases)
	deaths = append(deaths, death{phases[n-3], []int{2, 3}}, death{phases[n-2], []int{0, 1}})
	for _, death := range deaths {
		t.Run(fmt.Sprint(death.phase, death.ranks), func(t *testing.T) {
			judge(t, d, "q3", runJob(t, sql.Job{Query: text, Source: d}, death))
		})
	}
}

// A process that takes a task over reads its partition in another place.
func TestLostPlace(t *testing.T) {
	d, dir := newData(t)
	if err := os.RemoveAll(filepath.Join(dir, d.Places[1])); err != nil {
		t.Fatal(err)
	}
	text, err := queries.SQL("q12")
	if err != nil {
		t.Fatal(err)
	}
	judge(t, d, "q12", runJob(t, sql.Job{Query: text, Source: d}, death{"parts", []int{1}}))
}

// Without files, tasks generate their partitions, and new owners do so again.
func TestGeneratedSource(t *testing.T) {
	d, _ := newData(t)
	source, err := tpchdata.NewSource(0.01, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := queries.SQL("q6")
	if err != nil {
		t.Fatal(err)
	}
	judge(t, d, "q6", runJob(t, sql.Job{Query: text, Source: source}, death{"parts", []int{3}}))
}

const sortPlan = `
phase spread
SELECT o_totalprice::BIGINT AS price, o_orderkey FROM orders
=> spread by range(price)

phase sort
FROM spread ORDER BY price, o_orderkey
=> write %s
`

// Files that are written are complete and in order, and nothing else is left.
func TestWrite(t *testing.T) {
	d, _ := newData(t)
	want := aloneOn(t, d, "SELECT o_totalprice::BIGINT AS price, o_orderkey FROM orders ORDER BY price, o_orderkey")
	for _, death := range []death{{}, {"spread", []int{2}}, {"sort", []int{0}}, {"sort.exchange", []int{1}}} {
		t.Run(death.phase, func(t *testing.T) {
			dir := t.TempDir()
			plan, err := sql.ParsePlan(fmt.Sprintf(sortPlan, dir))
			if err != nil {
				t.Fatal(err)
			}
			result := runJob(t, sql.Job{Plan: plan, Source: d}, death)
			if result.Files != members || int(result.Written) != len(want) {
				t.Errorf("%d rows in %d files, want %d in %d", result.Written, result.Files, len(want), members)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != members+1 {
				t.Errorf("the directory has %v, %v", entries, err)
			}
			var files []string
			for task := range members {
				files = append(files, filepath.Join(dir, fmt.Sprintf("part-%05d.parquet", task)))
			}
			got := aloneOn(t, d, fmt.Sprintf("FROM read_parquet(['%s'])", strings.Join(files, "','")))
			if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Error("the rows are not those of one DuckDB, or not in order")
			}
			if _, err := os.Stat(filepath.Join(dir, sql.Marker)); err != nil {
				t.Error(err)
			}
		})
	}
}
