package pleach

import (
	"context"
	"errors"
	"fmt"
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
// goes on, down to the last: Config.AllowMinority is always set. That is safe as long
// as nobody is suspected who lives, as among the processes of one launcher.
type World struct {
	collective.Comm
	group    *Group
	link     *link
	engine   *engine.Engine
	watching sync.WaitGroup
}

// NewWorld makes this process part of a job. It returns as soon as the process
// can be reached; it does not wait for others, who may start later.
func NewWorld(ctx context.Context, c Config) (*World, error) {
	s, err := prepare(ctx, &c, modeWorld, func(c *Config) (*initialState, error) { return c.startState() })
	if err != nil {
		return nil, err
	}
	c.AllowMinority = true
	w, err := newWorld(c, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pleach: NewWorld: %w", err), s.transport.Close())
	}
	return w, nil
}

// newWorld puts courier, engine and group together.
func newWorld(c Config, s *initialState) (*World, error) {
	p, err := newLink(s)
	if err != nil {
		return nil, err
	}
	eng, err := engine.New(engine.Config{
		Rank: int(s.self.Rank), Size: int(s.view.Slots), View: s.view.Number, Link: p,
	})
	if err != nil {
		return nil, err
	}
	p.engine, p.logger = eng, c.Logger
	group, err := newGroup(c, s, p)
	if err != nil {
		eng.Close()
		return nil, err
	}
	p.open(group)
	w := &World{Comm: collective.Comm(eng.Comm()), group: group, link: p, engine: eng}
	w.watching.Go(func() {
		<-group.life.Done()
		eng.End(group.Err())
	})
	return w, nil
}

// Group is the group of the job's processes: for messages beside collectives.
func (w *World) Group() *Group { return w.group }

// View returns the present view.
func (w *World) View() View { return w.group.View() }

// Finalize ends this process's part of the job, like MPI_Finalize. It is the last
// collective call, also after Revoke and Shrink: it waits until every other
// process has called it and takes over the tasks of those that die meanwhile. It
// closes the world even if it fails.
func (w *World) Finalize(ctx context.Context) error {
	// Calls that ended with errors may have driven processes apart; an
	// agreement finds them together again.
	_, err := collective.Agree(ctx, w, 0)
	if err == nil {
		err = w.engine.Flush(ctx)
	}
	if err == nil {
		err = w.link.flush(ctx)
	}
	return errors.Join(err, w.Abort())
}

// Close leaves the job: the other processes take over this one's tasks. It
// waits at most a second for them to install a view without this process. See
// [World.Finalize] for the end of a job.
func (w *World) Close() error {
	return w.release(w.group.Close())
}

// Abort stops immediately without notifying the others; they see a crash and take
// over this process's tasks.
func (w *World) Abort() error {
	return w.release(w.group.Abort())
}

// release ends the engine after the group.
func (w *World) release(err error) error {
	w.watching.Wait()
	w.engine.Close()
	return err
}
