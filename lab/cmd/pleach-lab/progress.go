package main

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/pleach-go/pleach/agent/cli"
)

// progress counts runs, and on a terminal shows them in a bar once the work
// turns out to be long.
type progress struct {
	mu    sync.Mutex
	done  int
	bar   *progressbar.ProgressBar // nil in a pipe
	timer *time.Timer              // shows the bar although no run may be done
}

func newProgress(w io.Writer, runs int) *progress {
	if !cli.IsTerminal(w) {
		return &progress{}
	}
	// The bar runs from the start, so that it knows the time, but unseen.
	bar := progressbar.NewOptions(runs,
		progressbar.OptionSetWriter(cli.Late(w)),
		progressbar.OptionSetDescription("runs"),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
	)
	// An error of the bar means only that it is not seen.
	return &progress{bar: bar, timer: time.AfterFunc(cli.ProgressDelay, func() { _ = bar.RenderBlank() })}
}

// update takes the number of runs done. Workers may overtake each other on the
// way here.
func (p *progress) update(done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = max(p.done, done)
	if p.bar != nil {
		_ = p.bar.Set(p.done)
	}
}

// describe is update for work whose steps have names: it also shows what is done next.
func (p *progress) describe(done int, next string) {
	p.update(done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Describe(next)
	}
}

// stop removes the bar and returns the number of runs done.
func (p *progress) stop() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.timer.Stop()
		_ = p.bar.Clear()
	}
	return p.done
}
