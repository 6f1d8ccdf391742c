package bench

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/queries"
)

// Work is what a process of a measured job does.
type Work struct {
	// Alone makes one process run the query with one DuckDB over all parts.
	Alone       bool   `json:"alone,omitempty"`
	Data        string `json:"data"`
	Query       string `json:"query"`
	Unprotected bool   `json:"unprotected,omitempty"`
	// Death, if not nil, is when the process kills itself.
	Death *Death `json:"death,omitempty"`
}

// Death is so long after a process has begun a phase.
type Death struct {
	Phase string        `json:"phase"`
	After time.Duration `json:"after"`
}

// begin is called at the beginning of a phase.
func (d *Death) begin(phase string) {
	if d != nil && d.Phase == phase {
		time.AfterFunc(d.After, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
}

// event is a line that a process prints.
type event struct {
	// Phase is the phase that it begins, or done.
	Phase string        `json:"phase"`
	At    time.Time     `json:"at"`
	CPU   time.Duration `json:"cpu"` // that the process has used
	Rows  [][]string    `json:"rows,omitempty"`

	rank int // that has printed it
}

// done is the phase of a process that has the result and has to report it.
const done = "done"

// teller prints events.
type teller struct {
	mu  sync.Mutex // The result may come in another goroutine.
	out io.Writer
}

func (t *teller) tell(phase string, rows [][]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// If nobody reads, the process is killed soon.
	_ = json.NewEncoder(t.out).Encode(event{Phase: phase, At: time.Now(), CPU: cpuTime(), Rows: rows})
}

// job returns the job of the work.
func (w *Work) job(data *dataset.Dataset, t *teller) (sql.Job, error) {
	query, err := queries.SQL(w.Query)
	return sql.Job{
		Query: query, Source: data, Unprotected: w.Unprotected,
		Phase: func(name string) {
			t.tell(name, nil)
			w.Death.begin(name)
		},
		Done: func(r *sql.Result) { t.tell(done, r.Rows) },
	}, err
}

// cpuTime returns the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Serve does the work that text describes, and prints events to out. A job is run by run.
func Serve(ctx context.Context, text string, out io.Writer, run func(context.Context, sql.Job) error) error {
	var w Work
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return err
	}
	data, err := dataset.Open(w.Data)
	if err != nil {
		return err
	}
	t := &teller{out: out}
	if w.Alone {
		return w.alone(ctx, data, t)
	}
	job, err := w.job(data, t)
	if err != nil {
		return err
	}
	return run(ctx, job)
}
