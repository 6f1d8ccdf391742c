package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/queries"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
	"github.com/pleach-go/pleach/transport/mem"
)

// runCommand is one process of a job.
type runCommand struct {
	data, query, plan, file string
	scale                   float64
	json                    bool
}

func newRun() *cobra.Command {
	var r runCommand
	cmd := &cobra.Command{
		Use:   "run [flags]",
		Short: "Run a query with all processes of a job, although some die",
		Long: `Run a query with all processes that a launcher has started: pleach run, Slurm, mpirun and
so on. Without a launcher, one process runs it alone. Each process reads its parts of the
tables. When processes die, the others read their parts and do their stages again.

--query and --plan choose a query that is known, --file a plan of your own: see
docs/guide/sql.md for how a plan reads.

A process prints a line when it begins a phase, as in "phase join" or "phase join.exchange",
to standard error. One process prints the result to standard output. In it, answer says
whether the rows are the right ones: equal, different, or unknown. At scale factor 1 the
right ones are those that the TPC publishes, otherwise those of the reference
implementation that generate has used.

The exit code is 1 if the answer is different.`,
		Example: `  pleach run -n 8 pleach-sql run --data tpch1 --query q3 --plan broadcast
  pleach run -n 8 --kill '3@/^phase join/' pleach-sql run --data tpch1 --query q3 --plan repartition --json
  pleach run -n 4 pleach-sql run --sf 0.1 --query q3 --plan broadcast
  pleach run -n 4 pleach-sql run --data tpch1 --file mine.plan`,
		Args: func(*cobra.Command, []string) error { return r.validate() },
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&r.data, "data", "", "`directory` that generate has written")
	f.Float64Var(&r.scale, "sf", 0, "generate TPC-H data at this scale `factor` instead of reading it")
	f.StringVar(&r.query, "query", "q3", "`name` of the query")
	f.StringVar(&r.plan, "plan", "broadcast", "`name` of its plan")
	f.StringVar(&r.file, "file", "", "`file` with a plan, instead of --query and --plan")
	f.BoolVar(&r.json, "json", false, "print the result as a JSON object, on one line")
	return cmd
}

func (r *runCommand) validate() error {
	if (r.data == "") == (r.scale == 0) {
		return errors.New("choose either --data and a directory, or --sf and a scale factor")
	}
	return nil
}

// parse returns the plan.
func (r *runCommand) parse() (*sql.Plan, error) {
	if r.file == "" {
		return queries.Plan(r.query, r.plan)
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		return nil, err
	}
	r.query, r.plan = "", ""
	return sql.ParsePlan(string(text))
}

// source returns the tables, and a description of them for their answers.
func (r *runCommand) source(dir string) (sql.Source, *dataset.Dataset, error) {
	if r.data != "" {
		d, err := dataset.Open(r.data)
		return d, d, err
	}
	s, err := tpchdata.NewSource(r.scale, dir)
	return s, &dataset.Dataset{Scale: r.scale}, err
}

func (r *runCommand) run(cmd *cobra.Command) error {
	plan, err := r.parse()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "pleach-sql-")
	if err != nil {
		return failure{err}
	}
	defer os.RemoveAll(scratch)
	source, data, err := r.source(scratch)
	if err != nil {
		return err
	}
	p := &phases{out: cmd.ErrOrStderr()}
	reported := make(chan error, 1) // One process reports, and possibly from another goroutine.
	job := sql.Job{Plan: plan, Source: source, Phase: p.begin}
	err = runJob(cmd.Context(), job, func(w *pleach.World, result *sql.Result) {
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
	if _, err := db.Run(ctx, w, j); err != nil {
		return errors.Join(err, w.Abort(), db.Close())
	}
	return errors.Join(w.Finalize(ctx), db.Close())
}

// newWorld is the job of the launcher, or one process alone.
func newWorld(ctx context.Context) (*pleach.World, error) {
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if _, ok := errors.AsType[*bootstrap.NotFoundError](err); ok {
		alone := mem.NewNetwork(1, mem.Config{}).Member(0)
		return pleach.NewWorld(ctx, pleach.Config{Addresses: []string{"127.0.0.1:1"}, Transport: alone})
	}
	return w, err
}

// runJSON is what --json prints.
type runJSON struct {
	Query   string             `json:"query,omitempty"`
	Plan    string             `json:"plan,omitempty"`
	Answer  string             `json:"answer"`
	Columns []string           `json:"columns,omitempty"`
	Rows    [][]string         `json:"rows,omitempty"`
	Files   int                `json:"files,omitempty"`
	Written int64              `json:"written,omitempty"`
	Failed  []int              `json:"failed"`  // ranks
	Seconds map[string]float64 `json:"seconds"` // by phase, of the process that prints
}

var errDifferent = errors.New("the answer is different from the right one")

func (r *runCommand) report(out io.Writer, data *dataset.Dataset, result *sql.Result, failed []int, p *phases) error {
	answer := tpchdata.Judge(data, r.query, result.Rows)
	err := r.write(out, &runJSON{
		r.query, r.plan, answer, result.Columns, result.Rows, result.Files, result.Written, append([]int{}, failed...), p.seconds(),
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
		fmt.Fprintf(&b, "%d rows in %d files\n", j.Written, j.Files)
	}
	fmt.Fprintf(&b, "answer: %s; %.2f s\n", j.Answer, j.Seconds["total"])
	_, err := io.WriteString(out, b.String())
	return err
}

// phases prints a line for each phase, by which a fault can be injected into it, and
// measures how long the phases take.
type phases struct {
	out   io.Writer
	names []string
	at    []time.Time
}

func (p *phases) begin(name string) {
	p.names, p.at = append(p.names, name), append(p.at, time.Now())
	fmt.Fprintln(p.out, "phase", name)
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
