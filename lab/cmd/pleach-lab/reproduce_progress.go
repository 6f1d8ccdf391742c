package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/pleach-go/pleach/agent/cli"
)

// shareTicks is what a share of the work is counted in.
const shareTicks = 10_000

// shareProgress shows, on a terminal, what is being done, which share of all is
// done and how long the rest will take. Elsewhere, as in a log of CI, it writes a line to
// lines whenever something else is being done.
type shareProgress struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil in a pipe
	lines io.Writer                // nil for work that is over soon
	what  string                   // what was being done at the last line
}

func newShareProgress(w io.Writer) *shareProgress {
	if !cli.IsTerminal(w) {
		return &shareProgress{}
	}
	return &shareProgress{bar: progressbar.NewOptions(shareTicks,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
	)}
}

// update takes what is being done and the share done, from any goroutine.
func (p *shareProgress) update(what string, share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		if p.lines != nil && what != p.what {
			p.what = what
			fmt.Fprintf(p.lines, "%3.0f%% %s\n", 100*share, what)
		}
		return
	}
	// An error of the bar means only that it is not seen.
	p.bar.Describe(what)
	_ = p.bar.Set(min(int(share*shareTicks), shareTicks-1))
}

// stop removes the bar.
func (p *shareProgress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
