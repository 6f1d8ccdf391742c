package pleach

// A process of a job that is alive and does not get on holds up all others. With
// Config.ProgressTimeout they have it removed by a view, as if it had died.

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/protocol"
)

// Variables of a launcher that set what the program leaves at zero.
const (
	progressVariable  = "PLEACH_PROGRESS_TIMEOUT"
	suspicionVariable = "PLEACH_SUSPICION_TIMEOUT"
)

// readTimeouts takes timeouts from the environment.
func (c *Config) readTimeouts() error {
	for variable, timeout := range map[string]*time.Duration{progressVariable: &c.ProgressTimeout, suspicionVariable: &c.SuspicionTimeout} {
		text := os.Getenv(variable)
		if text == "" || *timeout != 0 {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("pleach: NewWorld: %s=%s: write a duration, as in 30s", variable, text)
		}
		*timeout = d
	}
	return nil
}

// Evict has a process removed from the job that the caller knows to be stuck, and returns
// when this process has a view without it. Its tasks are taken over, and its calls return
// [ErrEvicted]. Config.ProgressTimeout does that without a program's help.
func (w *World) Evict(ctx context.Context, rank int) error {
	if rank < 0 || rank >= w.Size() || rank == w.Rank() {
		return fmt.Errorf("pleach: Evict of rank %d: choose another process of %d", rank, w.Size())
	}
	w.link.evict(rank, fmt.Errorf("evicted by rank %d", w.Rank()))
	for v := range w.group.Views(ctx) {
		if !v.Has(rank) {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.group.Err()
}

// evict reports a process as one that has failed.
func (p *link) evict(rank int, why error) {
	g := p.group.Load()
	if g == nil {
		return
	}
	p.logger.Warn("a process is to be removed", "cause", why)
	_ = g.node.Do(func(protocol.Time) { p.accused[rank] = why })
	if m, ok := g.View().Member(rank); ok {
		g.handleReport(detect.Report{Rank: protocol.Rank(rank), Incarnation: m.Incarnation, Cause: why})
	}
}

// tellRemoved logs what has become of processes that were stuck, within node.Do.
func (p *link) tellRemoved(view uint64, members []engine.Member) {
	for rank, why := range p.accused {
		if !slices.ContainsFunc(members, func(m engine.Member) bool { return m.Rank == rank }) {
			delete(p.accused, rank)
			p.logger.Warn(fmt.Sprintf("%v: removed in view %d, its task is rank %d's", why, view, p.engine.Comm().Owner(rank)))
		}
	}
}
