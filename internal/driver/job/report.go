package job

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// ReportVariable names the descriptor of the pipe to the launcher. Package agent/launch reads it.
const ReportVariable = "PLEACH_REPORT_FD"

// Reporter tells the launcher what becomes of a job, so that it can end processes that were removed,
// and knows whether the job is complete. Without a launcher that listens, it does nothing. Lines:
//
//	removed RANK VIEW    the process of a rank was removed
//	back RANK VIEW       a rank has a process again
//	left                 this process leaves the job on its own
//	complete RANK,...    these processes have agreed on the end of the job
type Reporter struct {
	mu    sync.Mutex
	pipe  *os.File
	lines chan string // written by a goroutine, so that a slow launcher does not delay a view
}

// NewReporter takes over the pipe of the launcher, if there is one.
func NewReporter() *Reporter {
	fd, err := strconv.Atoi(os.Getenv(ReportVariable))
	if err != nil || fd < 3 {
		return &Reporter{}
	}
	pipe := os.NewFile(uintptr(fd), "reports")
	if s, err := pipe.Stat(); err != nil || s.Mode()&os.ModeNamedPipe == 0 {
		return &Reporter{} // the variable was inherited, and the descriptor was not
	}
	r := &Reporter{pipe: pipe, lines: make(chan string, maxReports)}
	go func() {
		for line := range r.lines {
			r.write(line)
		}
	}()
	return r
}

// maxReports bounds the reports that wait. More are dropped: the launcher reads none.
const maxReports = 1 << 13

func (r *Reporter) write(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.pipe.WriteString(line + "\n") // a launcher that is gone needs none
}

// Changed reports the difference between two views.
func (r *Reporter) Changed(view uint64, before, after []engine.Member) {
	if r.pipe == nil {
		return
	}
	had, has := incarnations(before), incarnations(after)
	for _, m := range before {
		if has[m.Rank] == 0 {
			r.enqueue(fmt.Sprintf("removed %d %d", m.Rank, view))
		}
	}
	for _, m := range after {
		if had[m.Rank] != m.Incarnation {
			r.enqueue(fmt.Sprintf("back %d %d", m.Rank, view))
		}
	}
}

func incarnations(members []engine.Member) map[int]uint64 {
	byRank := make(map[int]uint64, len(members))
	for _, m := range members {
		byRank[m.Rank] = m.Incarnation
	}
	return byRank
}

func (r *Reporter) enqueue(line string) {
	select {
	case r.lines <- line:
	default:
	}
}

// Left reports that this process leaves the job. It returns when the launcher can read it, so
// that no other process reports the removal before.
func (r *Reporter) Left() {
	if r.pipe != nil {
		r.write("left")
	}
}

// Complete reports that processes have agreed on the end of the job.
func (r *Reporter) Complete(members []engine.Member) {
	if r.pipe == nil || len(members) == 0 {
		return
	}
	ranks := make([]string, len(members))
	for i, m := range members {
		ranks[i] = strconv.Itoa(m.Rank)
	}
	r.write("complete " + strings.Join(ranks, ","))
}
