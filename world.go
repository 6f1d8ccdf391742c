package pleach

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/collective/engine"
)

// World is this process's part in a job of cooperating processes that start
// together: under a launcher (pleach run, Slurm, mpirun, torchrun, a Kubernetes
// Indexed Job) or with Config.Addresses. The functions of package collective run in
// it.
//
// A job has as many tasks as it had processes at the start. Rank i owns task i at
// first; when it dies, a survivor takes the task over. Any number of survivors
// continues, down to the last, as with Config.AllowMinority. That is safe as long as
// no live process is suspected, as among the processes of one launcher.
type World struct {
	collective.Comm
	group    *Group
	link     *link
	engine   *engine.Engine
	watching sync.WaitGroup
}

// NewWorld makes this process part of a job. It returns as soon as the other
// processes can reach this one; it does not wait for them to start. A process that
// does not start within Config.StartTimeout counts as dead. ctx bounds the call, not
// the job. A program ends its part by Finalize, and by Abort after an error.
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

// newWorld assembles the unicast channel, the engine and the group.
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

// Group returns the group of the job's processes, for messages beside collectives.
func (w *World) Group() *Group { return w.group }

// View returns the current view.
func (w *World) View() View { return w.group.View() }

// Finalize ends this process's part of the job, like MPI_Finalize. It is the last
// collective call, also after Revoke and Shrink: it waits until every other
// process has called it and takes over the tasks of those that die meanwhile. It
// closes the world even if it fails.
func (w *World) Finalize(ctx context.Context) error {
	// Calls that ended with errors may have left processes at different calls; an
	// agreement has an order of its own.
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
