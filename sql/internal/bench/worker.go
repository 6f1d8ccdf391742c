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
	Data        string `json:"data"`
	Query       string `json:"query"`
	Plan        string `json:"plan"`
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

// Job returns a job that prints what it does to out.
func (w *Work) Job(out io.Writer) (sql.Job, error) {
	plan, err := queries.Plan(w.Query, w.Plan)
	if err != nil {
		return sql.Job{}, err
	}
	data, err := dataset.Open(w.Data)
	if err != nil {
		return sql.Job{}, err
	}
	var mu sync.Mutex // The result may come in another goroutine.
	tell := func(phase string, rows [][]string) {
		mu.Lock()
		defer mu.Unlock()
		// The parent sees a pipe that is broken, and times are all that is lost.
		_ = json.NewEncoder(out).Encode(event{Phase: phase, At: time.Now(), CPU: cpuTime(), Rows: rows})
	}
	return sql.Job{
		Plan: plan, Source: data, Unprotected: w.Unprotected,
		Phase: func(name string) {
			tell(name, nil)
			w.Death.begin(name)
		},
		Done: func(r *sql.Result) { tell(done, r.Rows) },
	}, nil
}

// cpuTime returns the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Serve decodes work and runs it by run.
func Serve(ctx context.Context, text string, out io.Writer, run func(context.Context, sql.Job) error) error {
	var w Work
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return err
	}
	job, err := w.Job(out)
	if err != nil {
		return err
	}
	return run(ctx, job)
}
