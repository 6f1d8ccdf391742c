package pleach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/collective/loggp"
	"github.com/pleach-go/pleach/internal/driver/job"
	"github.com/pleach-go/pleach/protocol"
)

// World is this process's part in a job of cooperating processes that start
// together: under a launcher (pleach run, Slurm, mpirun, torchrun, a Kubernetes
// Indexed Job) or with Config.Addresses. The functions of package collective run in
// it.
//
// A job has as many tasks as it had processes at the start. Rank i owns task i at
// first; when it dies, a survivor takes the task over. World.Size is the number of
// tasks and does not change; World.Group().Size is the number of processes left.
//
// If all processes are on one host, by the hosts of their addresses, any number of
// survivors continues, down to the last: the kernel says which processes have died. On
// several hosts a process that is cut off looks like a dead one, so the processes
// continue only with a quorum: a majority of the current view, or exactly half of it
// with its lowest rank, as long as they have reached another process at all. The calls
// of all others wait for the network to heal and return a [*QuorumError] after
// Config.Job.QuorumTimeout. Config.AllowMinority switches the quorum off.
//
// A process that replaces a dead one (pleach run --respawn) is a World that waits: see
// [World.Admit].
type World struct {
	collective.Comm
	group       *Group
	link        *job.Link
	engine      *engine.Engine // of the first generation, and by it of all
	former      *engine.Engine // of the generation before this one, or nil
	current     *engine.Engine
	replacement bool
	watching    sync.WaitGroup
}

// worldSharedBytes is the default of Limits.SharedBytes in a World.
const worldSharedBytes = 64 << 20

// NewWorld makes this process part of a job. It returns as soon as the other
// processes can reach this one; it does not wait for them to start. A process that
// does not start within Config.Detection.StartTimeout counts as dead; under pleach run, one that
// ends before does at once. ctx bounds the call, not the job. A program ends its part by Finalize,
// and by Abort after an error.
//
// A process that replaces a dead one of the job, by Config.Job.Respawned or because pleach
// run --respawn has started it, is back in the group when NewWorld returns. It makes no
// collective call before [World.Admit].
func NewWorld(ctx context.Context, c Config) (*World, error) {
	if err := readTimeouts(&c); err != nil {
		return nil, err
	}
	s, err := prepare(ctx, &c, modeWorld, func(c *Config) (*initialState, error) { return worldState(c, ctx) })
	if err != nil {
		return nil, err
	}
	requireQuorum(&c, s.job())
	w, err := newWorld(c, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pleach: NewWorld: %w", err), s.transport.Close())
	}
	return w, nil
}

// newWorld assembles the unicast channel, the engine and the group.
func newWorld(c Config, s *initialState) (*World, error) {
	processes := s.job()
	p, err := job.New(job.Config{
		Rank: s.self.Rank, View: s.view, Processes: processes, Quorum: !c.AllowMinority,
		Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	first := engine.Config{
		Rank: int(s.self.Rank), Size: len(processes), View: s.view.Number, Link: p,
		KeepCalls: c.Job.LogCalls, KeepBytes: c.Job.LogBytes, PollTime: c.Job.PollTime,
		Placement: job.Placement(processes), ProgressTimeout: c.Job.ProgressTimeout,
		Evict:   func(rank int, why error) { go p.Evict(rank, why) },
		Network: loggp.Network{Inside: loggp.Link(c.Job.Network.Inside), Between: loggp.Link(c.Job.Network.Between)},
	}
	if s.replaces != nil {
		first.View, first.Waiting = 0, s.self.Incarnation
	}
	eng, err := engine.New(first)
	if err != nil {
		return nil, err
	}
	if s.replaces != nil {
		eng.InstallMembers(s.view.Number, p.MembersOf(&s.view))
	}
	p.SetEngine(eng)
	group := newGroup(c)
	if err := group.enter(c, s, p, nil); err != nil {
		eng.Close()
		return nil, err
	}
	p.Open(jobGroup{group.session()})
	w := &World{
		Comm: collective.Comm(eng.Comm()), group: group, link: p,
		engine: eng, current: eng, replacement: s.replaces != nil,
	}
	w.watching.Go(func() { w.watch(c.Job.QuorumTimeout) })
	return w, nil
}

// Group returns the group of the job's processes, for messages that are not collectives.
func (w *World) Group() *Group { return w.group }

// View returns the current view.
func (w *World) View() View { return w.group.View() }

// Finalize ends this process's part of the job, like MPI_Finalize. It is the last
// collective call, also after Revoke and Shrink: it waits until every other
// process has called it and takes over the tasks of those that die meanwhile. It
// closes the world even if it fails. Owner and Tasks then tell which process owned each
// task at the end of the job.
func (w *World) Finalize(ctx context.Context) error {
	w.current.Finalize()
	err := w.agreeToEnd(ctx)
	if err == nil {
		// All calls of all processes have returned. The second agreement tells that all
		// processes know, so that none takes one that ends now for dead, and that the
		// messages of tasks that were taken over have arrived. If it fails, the job is still
		// complete.
		w.link.Complete()
		w.engine.KeepOwners()
		w.current.DismissWaiting()
		limited, cancel := context.WithTimeout(ctx, leaveTogether)
		_ = errors.Join(w.engine.Settle(limited), w.link.Flush(limited), w.agreeToEnd(limited))
		cancel()
		if d := w.engine.Divergence(); d != nil { // messages of tasks that were taken over have been compared
			err = (*collective.DivergedError)(d)
		}
	}
	return errors.Join(err, w.Abort())
}

// leaveTogether is how long a process that has finalized waits for the others to know.
const leaveTogether = 2 * time.Second

// agreeToEnd returns when all processes have called it, and they know. Calls that ended
// with errors may have left processes at different calls; an agreement has an order of
// its own.
func (w *World) agreeToEnd(ctx context.Context) error {
	if _, err := collective.Agree(ctx, w, 0); err != nil {
		return err
	}
	if err := w.current.Flush(ctx); err != nil {
		return err
	}
	return w.link.Flush(ctx)
}

// Close leaves the job: the other processes take over this one's tasks. It
// waits at most a second for them to install a view without this process. See
// [World.Finalize] for the end of a job.
func (w *World) Close() error {
	w.link.Leave()
	return w.release(w.group.Close())
}

// Abort stops immediately without notifying the others; they see a crash and take
// over this process's tasks.
func (w *World) Abort() error {
	w.link.Leave()
	return w.release(w.group.Abort())
}

// release ends the engine after the group.
func (w *World) release(err error) error {
	w.watching.Wait()
	w.engine.Close()
	return err
}

// Variables of a launcher that set what the program leaves at zero.
const (
	progressVariable  = "PLEACH_PROGRESS_TIMEOUT"
	suspicionVariable = "PLEACH_SUSPICION_TIMEOUT"
)

// readTimeouts takes timeouts from the environment.
func readTimeouts(c *Config) error {
	for variable, timeout := range map[string]*time.Duration{
		progressVariable:  &c.Job.ProgressTimeout,
		suspicionVariable: &c.Detection.SuspicionTimeout,
	} {
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
// [ErrEvicted]. Config.Job.ProgressTimeout does that without a program's help.
func (w *World) Evict(ctx context.Context, rank int) error {
	if rank < 0 || rank >= w.Size() || rank == w.Rank() {
		return fmt.Errorf("pleach: Evict of rank %d: choose another process of %d", rank, w.Size())
	}
	w.link.Evict(rank, fmt.Errorf("evicted by rank %d", w.Rank()))
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

// jobGroup is the group of a job as its link sees it.
type jobGroup struct{ *session }

// Do implements [job.Group].
func (g jobGroup) Do(f func()) error {
	if g.node.Do(func(protocol.Time) { f() }) != nil {
		return ErrClosed
	}
	return nil
}

// Poll implements [job.Group].
func (g jobGroup) Poll(from int) (received, ok bool) { return g.node.Poll(protocol.Rank(from)) }

// Rest implements [job.Group].
func (g jobGroup) Rest() { g.node.Rest() }

// Done implements [job.Group].
func (g jobGroup) Done() <-chan struct{} { return g.life.Done() }

// Accuse implements [job.Group].
func (g jobGroup) Accuse(rank int, why error) {
	if m, ok := g.View().Member(rank); ok {
		g.handleReport(detect.Report{Rank: protocol.Rank(rank), Incarnation: m.Incarnation, Cause: why})
	}
}

// A job on several hosts continues only with a quorum, because a process that is cut off
// would otherwise finish the whole job a second time.

// Defaults of a World on several hosts. A process that is removed from a job cannot come
// back, so it may be silent for as long as TCP lets its host be.
const (
	defaultQuorumTimeout  = 30 * time.Second
	worldSuspicionTimeout = 10 * time.Second
)

// requireQuorum decides whether the processes of a job continue only with a quorum: if
// they are on several hosts, and the program does not allow otherwise.
func requireQuorum(c *Config, processes []string) {
	c.Job.QuorumTimeout = cmp.Or(c.Job.QuorumTimeout, defaultQuorumTimeout)
	switch hosts := job.Hosts(processes); {
	case hosts == 1:
		c.AllowMinority = true
	case c.AllowMinority:
		c.Logger.Warn("AllowMinority: if the network between the hosts is partitioned, each part finishes the whole job, and fencing tokens do not tell their outputs apart",
			"hosts", hosts, "processes", len(processes))
	default:
		c.Detection.SuspicionTimeout = cmp.Or(c.Detection.SuspicionTimeout,
			max(worldSuspicionTimeout, 5*c.Detection.HeartbeatInterval))
	}
}

// watch ends the engine when this process is no longer a member, and the membership when
// the quorum has been lost for too long.
func (w *World) watch(timeout time.Duration) {
	g := w.group.session()
	expired := time.NewTimer(timeout)
	defer expired.Stop()
	for lost := error(nil); ; {
		changed := g.changed.Wait()
		switch now := g.quorumErr.Load(); {
		case now == nil:
			lost = nil
			expired.Stop()
		case !w.link.Reached(): // and StartTimeout has passed
			w.giveUp(isolatedError(g.View().Number, w.Size()))
		case lost == nil:
			lost = now
			expired.Reset(timeout)
		}
		select {
		case <-changed:
		case <-expired.C:
			w.giveUp(lostError(lost, timeout))
		case view := <-w.link.Alone():
			w.giveUp(isolatedError(view, w.Size()))
		case <-g.life.Done():
			w.engine.End(g.Err())
			return
		}
	}
}

// giveUp ends a process that has no quorum. The others see a crash, so that they do not
// wait for it if the network heals later.
func (w *World) giveUp(err error) {
	s := w.group.session()
	s.log.Error("this process leaves the job", "error", err)
	w.link.Leave()
	s.end(err)
	w.engine.End(err)
	_ = w.group.Abort()
}

// jobError is why a process leaves its job, and what to do.
type jobError struct {
	text string
	err  error // a *QuorumError
}

func (e *jobError) Error() string { return e.text }

// Unwrap returns the cause.
func (e *jobError) Unwrap() error { return e.err }

// lostError is the error of a process that has lost the quorum for too long.
func lostError(lost error, after time.Duration) error {
	text := ErrNoQuorum.Error()
	var q *QuorumError
	if errors.As(lost, &q) {
		text = fmt.Sprintf("%v in view %d: %d processes reachable, %d needed", ErrNoQuorum, q.View, q.Reachable, q.Needed)
	}
	return &jobError{fmt.Sprintf(
		"%s, for %v; this process has left the job: if the others do not finish it, start it again", text, after), lost}
}

// isolatedError is the error of a process that has reached no other one of its job.
func isolatedError(view uint64, size int) error {
	return &jobError{
		fmt.Sprintf("%v: none of the other processes was reached since the start (%d); check their addresses, and that no firewall is between the hosts", ErrNoQuorum, size-1),
		&QuorumError{View: view, Reachable: 1, Needed: size/2 + 1},
	}
}
