package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
	"github.com/pleach-go/pleach/transport/mem"
)

// runCommand is one process of a job.
type runCommand struct {
	question
	out    string
	json   bool
	phases bool
}

func newRun() *cobra.Command {
	var r runCommand
	cmd := &cobra.Command{
		Use:   "run [flags] [SELECT]",
		Short: "Run a query with all processes of a job, even when some die",
		Long: `Run a query with all processes that a launcher has started: pleach run, Slurm, mpirun and
so on. Without a launcher, one process runs it alone. Each process reads its parts of the
tables. When processes die, the others read their parts and do their stages again.

The query is a SELECT over the tables of --data. One process makes a plan of it; explain shows
that. A query that has no plan is refused, with a sentence that says what to write instead.
--query runs a known query of TPC-H, --file a query, or a plan of your own if the name ends with
.plan: see docs/guide/sql.md for how a plan reads.

--out writes the result to a file, by the end of its name as Parquet, CSV or JSON. If the name
ends with a slash, each process writes a part of it to that directory, as Parquet, and _SUCCESS
comes last.

One process prints the result to standard output, or the query's error to standard error. With
--phases, each process prints a line to standard error when it begins a phase, as in "phase orders"
or "phase orders.exchange", for the --kill and --stop of pleach run. With --query, answer says whether the rows are those that one DuckDB has given when the
data was generated: equal, different, or unknown with --sf. The exit code is 1 if they are
different.`,
		Example: `  pleach run -n 8 pleach-sql run --data tpch1 'SELECT count(*) FROM orders WHERE o_totalprice > 500000'
  pleach run -n 8 --kill '3@/^phase orders/' pleach-sql run --data tpch1 --query q3 --phases --json
  pleach run -n 4 pleach-sql run --data shop --file top.sql --out top.csv
  pleach run -n 4 pleach-sql run --sf 0.1 --query q6`,
		Args: func(_ *cobra.Command, args []string) error { return r.validate(args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	f := cmd.Flags()
	r.flags(cmd)
	f.StringVar(&r.out, "out", "", "`file` for the result, new: .parquet, .csv or .json; or a directory that ends with /")
	f.BoolVar(&r.json, "json", false, "print the result as a JSON object, on one line")
	f.BoolVar(&r.phases, "phases", false, "print a line to standard error at the beginning of each phase")
	return cmd
}

func (r *runCommand) run(cmd *cobra.Command) error {
	scratch, err := os.MkdirTemp("", "pleach-sql-")
	if err != nil {
		return failure{err}
	}
	defer os.RemoveAll(scratch)
	job, data, err := r.job(scratch)
	if err != nil {
		return err
	}
	p := &phases{out: cmd.ErrOrStderr(), lines: r.phases}
	defer p.bar.stop()
	job.Out, job.Phase, job.Planned = r.out, p.begin, p.planned
	reported := make(chan error, 1) // One process reports, and possibly from another goroutine.
	err = runJob(cmd.Context(), job, func(w *pleach.World, result *sql.Result) {
		p.bar.stop()
		reported <- r.report(cmd.OutOrStdout(), data, result, w.Failed(), p)
	})
	if err != nil {
		return failure{err}
	}
	select {
	case err := <-reported:
		return err
	default:
		return nil
	}
}

// runJob is a process of a job from its beginning to its end. The process that has to
// report the result calls done.
func runJob(ctx context.Context, j sql.Job, done func(*pleach.World, *sql.Result)) error {
	db, err := sql.Open()
	if err != nil {
		return err
	}
	w, err := newWorld(ctx)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	j.Done = func(result *sql.Result) { done(w, result) }
	_, err = db.Run(ctx, w, j)
	switch {
	case err == nil:
		return errors.Join(w.Finalize(ctx), db.Close())
	case ofQuery(err):
		err = said{err, slices.Contains(w.Tasks(), 0)}
		// All processes have this error, so none dies of it.
		return errors.Join(err, w.Finalize(ctx), db.Close())
	}
	return errors.Join(err, w.Abort(), db.Close())
}

// said is an error that all processes have, and one of them prints: the owner of task 0, which would
// have printed the result.
type said struct {
	error
	here bool
}

func (s said) Unwrap() error { return s.error }

// ofQuery reports whether an error is the query's.
func ofQuery(err error) bool {
	_, refused := errors.AsType[*sql.QueryError](err)
	_, reads := errors.AsType[*sql.UnpartitionedError](err)
	return refused || reads
}

// newWorld is the job of the launcher, or one process alone.
func newWorld(ctx context.Context) (*pleach.World, error) {
	// What is sent is in memory anyway, so the log may be as long as that.
	config := pleach.Config{Job: pleach.Job{LogBytes: math.MaxInt}}
	w, err := pleach.NewWorld(ctx, config)
	if _, ok := errors.AsType[*bootstrap.NotFoundError](err); ok {
		config.Addresses = []string{"127.0.0.1:1"}
		config.Network.Transport = mem.NewNetwork(1, mem.Config{}).Member(0)
		return pleach.NewWorld(ctx, config)
	}
	return w, err
}

// runJSON is what --json prints.
type runJSON struct {
	Query   string             `json:"query,omitempty"`  // its name
	Answer  string             `json:"answer,omitempty"` // of a known query
	Out     string             `json:"out,omitempty"`
	Columns []string           `json:"columns,omitempty"`
	Rows    [][]string         `json:"rows,omitempty"`
	Files   int                `json:"files,omitempty"`
	Written int64              `json:"written,omitempty"`
	Failed  []int              `json:"failed"`  // ranks
	Seconds map[string]float64 `json:"seconds"` // by phase, of the process that prints
}

var errDifferent = errors.New("the answer is different from the right one")

func (r *runCommand) report(out io.Writer, data *dataset.Dataset, result *sql.Result, failed []int, p *phases) error {
	answer := ""
	if r.known != "" && r.out == "" {
		answer = tpchdata.Judge(data, r.known, result.Rows)
	}
	err := r.write(out, &runJSON{
		r.known, answer, r.out, result.Columns, result.Rows, result.Files, result.Written, append([]int{}, failed...),
		p.seconds(),
	})
	if err == nil && answer == tpchdata.Different {
		err = errDifferent
	}
	if err != nil {
		return failure{err}
	}
	return nil
}

func (r *runCommand) write(out io.Writer, j *runJSON) error {
	if r.json {
		return json.NewEncoder(out).Encode(j)
	}
	var b strings.Builder
	for _, row := range append([][]string{j.Columns}, j.Rows...) {
		if len(row) > 0 {
			fmt.Fprintln(&b, strings.Join(row, " | "))
		}
	}
	if j.Files > 0 {
		fmt.Fprintf(&b, "%d rows in %d files; ", j.Written, j.Files)
	}
	if j.Answer != "" {
		fmt.Fprintf(&b, "answer: %s; ", j.Answer)
	}
	fmt.Fprintf(&b, "%.2f s\n", j.Seconds["total"])
	_, err := io.WriteString(out, b.String())
	return err
}

// phases measures how long phases take. It prints a line for each, by which a fault can be injected
// into it, or shows on a terminal how many are done.
type phases struct {
	out   io.Writer
	lines bool
	bar   progress
	names []string
	at    []time.Time
}

// planned is called when it is known how many phases there are.
func (p *phases) planned(plan *sql.Plan) {
	if !p.lines {
		p.bar = newProgress(p.out, "phases", 2*len(plan.Stages))
	}
}

func (p *phases) begin(name string) {
	p.names, p.at = append(p.names, name), append(p.at, time.Now())
	if p.lines {
		fmt.Fprintln(p.out, "phase", name)
	}
	p.bar.update(len(p.names))
}

// seconds returns how long each phase took, and all together. The last one ends now.
func (p *phases) seconds() map[string]float64 {
	now := time.Now()
	s := map[string]float64{"total": now.Sub(p.at[0]).Seconds()}
	ends := append(p.at[1:len(p.at):len(p.at)], now)
	for i, name := range p.names {
		s[name] = ends[i].Sub(p.at[i]).Seconds()
	}
	return s
}
