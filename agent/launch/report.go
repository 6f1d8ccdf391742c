package launch

import (
	"fmt"
	"syscall"
	"time"
)

// Report says how the processes of a job ended.
type Report struct {
	Outcomes []Outcome // by rank
	// Missed are faults that were not injected because their process had ended.
	Missed []Fault
	// Unmatched are faults that were not injected because their process printed no line
	// that they wait for.
	Unmatched []Fault
	// Interrupted is why all processes were asked to end, or nil. It is an
	// [*InterruptedError] if a signal came.
	Interrupted error
	// Complete says that processes have agreed on the end of the job, that all of them exited
	// with 0, and that every other one was removed from the job before: its work was taken over.
	Complete bool
}

// Outcome is how a process ended.
type Outcome struct {
	Rank  int
	Kind  OutcomeKind
	Text  string        // such as "exit code 3"
	After time.Duration // from the start of the job
}

// OutcomeKind says whether an end is a failure.
type OutcomeKind int

const (
	// Succeeded processes exited with 0.
	Succeeded OutcomeKind = iota
	// Ended processes were ended on purpose: by a fault, or because the job was.
	Ended
	// Failed processes ended by themselves, and not with 0.
	Failed
	// Survived failures are of processes that were removed from the job, which the others completed.
	Survived
)

// FirstFailure returns the failure that came first.
func (r *Report) FirstFailure() (first Outcome, ok bool) {
	for _, o := range r.Outcomes {
		if o.Kind == Failed && (!ok || o.After < first.After) {
			first, ok = o, true
		}
	}
	return first, ok
}

func (r *running) report() *Report {
	report := &Report{Interrupted: r.interrupted}
	for _, p := range r.processes {
		report.Outcomes = append(report.Outcomes, r.outcome(p))
	}
	r.forgiveLate(report.Outcomes)
	report.Complete = r.membership.completedBy(report.Outcomes)
	for i := range report.Outcomes {
		if o := &report.Outcomes[i]; report.Complete && o.Kind == Failed && !r.Strict {
			o.Kind = Survived
		}
	}
	if r.interrupted != nil {
		return report
	}
	report.Unmatched = r.unmatched()
	for _, f := range append(r.missed, r.Faults...) {
		if f.Kind != FaultResume { // a dead process need not be resumed
			report.Missed = append(report.Missed, f)
		}
	}
	return report
}

// wasKilled reports whether SIGKILL ended the process.
func (p *rankProcess) wasKilled() bool {
	return p.exit().signal == syscall.SIGKILL
}

func (r *running) outcome(p *rankProcess) Outcome {
	e := p.exit()
	o := Outcome{Rank: p.rank, After: e.at.Sub(r.Output.start).Round(time.Millisecond)}
	killed := p.wasKilled()
	switch {
	case e.code == 0:
		o.Kind, o.Text = Succeeded, "exit code 0"
	case killed && p.killed != nil:
		o.Kind, o.Text = Ended, "killed on purpose"
	case killed && p.evicted != "":
		o.Kind, o.Text = Failed, p.evicted
	case killed && p.stopped:
		o.Kind, o.Text = Ended, "stopped on purpose, ended with the others"
	case p.asked && (killed || e.signal == syscall.SIGTERM):
		o.Kind, o.Text = Ended, "asked to end"
	case e.lost != "":
		o.Kind, o.Text = Failed, e.lost
	case e.signal != 0:
		o.Kind, o.Text = Failed, fmt.Sprintf("crashed (%v)", e.signal)
	default:
		o.Kind, o.Text = Failed, fmt.Sprintf("exit code %d", e.code)
	}
	if gone := r.membership.removed[p.rank]; gone != nil && o.Kind == Failed && p.evicted == "" && e.lost == "" {
		o.Text += fmt.Sprintf(", removed from the job in view %d", gone.view)
	}
	return o
}
