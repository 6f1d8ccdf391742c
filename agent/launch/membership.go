package launch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The processes of a job agree on which of them are left, and tell the launcher through a pipe: which
// rank was removed, in which view; that a process leaves the job on its own; and which ranks have
// agreed on the end of the job. The launcher kills a process that was removed and does not end,
// because it is stuck or stopped, and learns whether the survivors have completed the job.

// reportVariable names the descriptor that a process writes its reports to. Package internal/driver/job
// writes them.
const reportVariable = "PLEACH_REPORT_FD"

// report is a line that the process of a rank has written.
type report struct {
	rank int
	line string
}

// maxReport bounds a report: a longer one is dropped.
const maxReport = 1 << 16

// reports cuts what a process writes into lines.
type reports struct {
	rank    int
	to      chan<- report
	partial []byte
}

func (r *reports) Write(b []byte) (int, error) {
	r.partial = append(r.partial, b...)
	for {
		line, rest, whole := bytes.Cut(r.partial, []byte{'\n'})
		if !whole {
			break
		}
		r.to <- report{r.rank, string(line)}
		r.partial = rest
	}
	if len(r.partial) > maxReport {
		r.partial = nil
	}
	return len(b), nil
}

// membership is what the launcher knows of a job's view.
type membership struct {
	removed []*removal // by rank; nil: it is in the job, as far as is known
	views   []uint64   // by rank: the last view that it was removed in, or came back in
	anew    []bool     // by rank: its process was restarted, and has not come back yet
	left    []bool     // by rank: its process has left the job on its own
	ending  []bool     // by rank: the processes that have agreed on the end of the job; nil: none have
	expired <-chan time.Time
}

// removal is that a rank was removed from the job.
type removal struct {
	view  uint64
	after time.Duration
	told  time.Time
}

func newMembership(size int) membership {
	return membership{
		removed: make([]*removal, size), views: make([]uint64, size), anew: make([]bool, size),
		left: make([]bool, size),
	}
}

// forget notes that a rank has a new process. Removals count again when it is in the job.
func (m *membership) forget(rank int) {
	m.removed[rank], m.left[rank], m.anew[rank] = nil, false, true
}

// completedBy reports whether a job was completed: each process that has agreed on its end has exited
// with 0, or was ended on purpose when it had; all others were removed before.
func (m *membership) completedBy(outcomes []Outcome) bool {
	succeeded := false
	for rank, o := range outcomes {
		if m.ending == nil || m.ending[rank] && o.Kind == Failed {
			return false
		}
		succeeded = succeeded || m.ending[rank] && o.Kind == Succeeded
	}
	return succeeded
}

// since returns the time from the start of the job.
func (r *running) since() time.Duration { return time.Since(r.Output.start).Round(time.Millisecond) }

// handleReport takes in a report. A line that makes no sense is ignored: the program may write to the pipe.
func (r *running) handleReport(t report) {
	m, words := &r.membership, strings.Fields(t.line)
	switch {
	case len(words) == 1 && words[0] == "left":
		m.left[t.rank] = true
	case len(words) == 3 && (words[0] == "removed" || words[0] == "back"):
		rank, err := strconv.Atoi(words[1])
		view, err2 := strconv.ParseUint(words[2], 10, 64)
		if err != nil || err2 != nil || rank < 0 || rank >= r.Size || view <= m.views[rank] {
			return // or another process has told it
		}
		m.views[rank] = view
		if words[0] == "back" {
			m.removed[rank], m.anew[rank] = nil, false
		} else if !m.anew[rank] {
			r.remove(rank, view)
		}
	case len(words) == 2 && words[0] == "complete":
		m.addEnding(words[1], r.Size)
		m.left[t.rank] = true
	}
}

// addEnding takes in the ranks that have agreed on the end of the job, as one of them knows them.
func (m *membership) addEnding(text string, size int) {
	if m.ending == nil {
		m.ending = make([]bool, size)
	}
	for one := range strings.SplitSeq(text, ",") {
		if rank, err := strconv.Atoi(one); err == nil && rank >= 0 && rank < size {
			m.ending[rank] = true
		}
	}
}

// remove notes that a rank was removed. Its process has the grace time to end.
func (r *running) remove(rank int, view uint64) {
	m := &r.membership
	m.removed[rank] = &removal{view, r.since(), time.Now()}
	if !r.processes[rank].ended && !m.left[rank] {
		m.expired = time.After(r.Grace)
	}
}

// removed reports whether a process was removed from the job, and has not left it on its own.
func (r *running) removed(p *rankProcess) bool {
	return r.membership.removed[p.rank] != nil && !r.membership.left[p.rank]
}

// killRemoved kills the processes that were removed from the job and have not ended within the grace
// time.
func (r *running) killRemoved() {
	m := &r.membership
	m.expired = nil
	for _, p := range r.processes {
		if p.ended || p.evicted != "" || !r.removed(p) {
			continue
		}
		gone := m.removed[p.rank]
		if left := r.Grace - time.Since(gone.told); left > 0 {
			m.expired = time.After(left)
			continue
		}
		p.evicted = fmt.Sprintf("removed from the job in view %d after %v, and killed", gone.view, gone.after)
		r.Output.notice("rank %d was removed from the job in view %d after %v and has not ended: killing it", p.rank,
			gone.view, gone.after)
		p.Kill()
	}
}
