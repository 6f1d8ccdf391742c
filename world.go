package pleach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
)

// World is this process's part in a job of cooperating processes, started as a
// whole by a launcher (pleach run, Slurm, mpirun, torchrun, a Kubernetes Indexed
// Job) or from Config.Addresses. Package collective's functions run in it.
//
// A job has as many tasks as it had processes at the start: task i is first owned
// by rank i, and by a survivor after that one's death. Any number of survivors
// goes on, down to the last: Config.NoQuorum is always set. That is safe as long
// as nobody is suspected who lives, as among the processes of one launcher.
type World struct {
	collective.Comm
	group  *Group
	post   *post
	engine *engine.Engine
	ending sync.WaitGroup
}

// NewWorld makes this process part of a job. It returns as soon as the process
// can be reached; it does not wait for others, who may start later.
func NewWorld(ctx context.Context, c Config) (*World, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("pleach: world: %w", err)
	}
	if c.Fixed || c.Found || len(c.Seeds) > 0 || c.Transport != nil && len(c.Addresses) == 0 {
		return nil, errors.New("pleach: world: it is started as a whole and has views: no Fixed, Found, Seeds, or Transport without Addresses")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.NoQuorum = true
	b, err := c.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("pleach: world: %w", err)
	}
	w, err := newWorld(c, b)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pleach: world: %w", err), b.transport.Close())
	}
	return w, nil
}

// newWorld puts courier, engine and group together.
func newWorld(c Config, b *beginning) (*World, error) {
	p, err := newPost(b)
	if err != nil {
		return nil, err
	}
	eng, err := engine.New(engine.Config{
		Rank: int(b.self.Rank), Size: int(b.view.Slots), View: b.view.Number, Link: p,
	})
	if err != nil {
		return nil, err
	}
	p.engine, p.logger = eng, c.Logger
	group, err := newGroup(c, b, p)
	if err != nil {
		eng.Close()
		return nil, err
	}
	p.open(group)
	w := &World{Comm: collective.Comm(eng.Comm()), group: group, post: p, engine: eng}
	w.ending.Go(func() {
		<-group.over.done
		eng.End(group.Err())
	})
	return w, nil
}

// Group is the group of the job's processes: for messages beside collectives.
func (w *World) Group() *Group { return w.group }

// View returns the present view.
func (w *World) View() View { return w.group.View() }

// Finish ends this process's part when all others have come to their ends too:
// until then it takes over what the dead leave. It is a collective itself, the
// last one, also after Revoke and Shrink, and closes the world even if it fails.
func (w *World) Finish(ctx context.Context) error {
	// Calls that ended with errors may have driven processes apart; an
	// agreement finds them together again.
	_, err := collective.Agree(ctx, w, 0)
	if err == nil {
		err = w.engine.Flush(ctx)
	}
	if err == nil {
		err = w.post.flush(ctx)
	}
	return errors.Join(err, w.Close())
}

// Close ends this process's part at once: to the others it is as if it had died,
// and they take over its tasks. See [World.Finish].
func (w *World) Close() error {
	err := w.group.Close()
	w.ending.Wait()
	w.engine.Close()
	return err
}
