package pleach

// A process that replaces a dead one of a job joins the job's group again, under the ID and
// so at the rank of the dead one. It is part of the job from the next Admit on.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/driver/job"
)

// Errors of a process that replaces another one.
var (
	// ErrNotAdmitted is wrapped by the error of a collective call that a replacement makes
	// before [World.Admit] has taken it in.
	ErrNotAdmitted = engine.ErrNotAdmitted
	// ErrJobEnded is wrapped by the error of [World.Admit] in a replacement whose job has ended
	// without it. There is nothing left to do for it.
	ErrJobEnded = engine.ErrJobEnded
)

// Admission is what [World.Admit] has done.
type Admission struct {
	// Joined are the ranks of the processes that were taken in, in ascending order. If
	// empty, none was waiting, and everything is as before.
	Joined []int
	// Root is the lowest rank that was in the job before: its process has the state that
	// the new ones need.
	Root int
}

// Admit takes processes into the job that replace dead ones. It is a collective call: a
// program makes it where it can hand its state to newcomers, such as at the top of its
// loop. A replacement makes it first of all, and waits in it until the others come to
// theirs. Admit returns the same to all, and those that have the state then broadcast it:
//
//	a, err := world.Admit(ctx)
//	if len(a.Joined) > 0 {
//		state, err = collective.Broadcast(ctx, world, a.Root, state)
//	}
//
// Each process that was taken in owns the task of its rank again, so that no process has
// two if all dead ones were replaced. The tasks of those that were not are reassigned.
//
// If processes were taken in, the world has a new communicator, without revocation, whose
// calls are numbered from zero. Copies of World.Comm, and communicators that Shrink has
// derived, are still those of before: they end when Admit takes in processes for the second
// time, and so do holds ([collective.Comm.Hold]). No other call of this process may be in
// progress during Admit. Like [collective.Agree], it works whatever calls processes came
// from.
//
// In a replacement whose job ends without it, Admit returns [ErrJobEnded].
func (w *World) Admit(ctx context.Context) (Admission, error) {
	comm, err := w.Comm.Admit(ctx)
	if err != nil {
		return Admission{}, err
	}
	next := engine.Comm(comm).Engine()
	if next == w.current {
		return Admission{}, nil
	}
	if w.former != nil {
		w.former.Retire()
	}
	w.former, w.current, w.Comm = w.current, next, comm
	var a Admission
	a.Joined, a.Root = next.Admission()
	return a, nil
}

// Respawned reports whether this process has taken the place of a dead one. It then skips
// the calls that the others have made before their first Admit.
func (w *World) Respawned() bool { return w.replacement }

// worldState is the state of a process of a job: one that starts together with all others,
// or one that replaces another.
func worldState(c *Config, ctx context.Context) (*initialState, error) {
	if c.Network.Transport != nil {
		return startState(c, ctx)
	}
	c.Limits.SharedBytes = cmp.Or(c.Limits.SharedBytes, worldSharedBytes)
	a, err := assignment(c, ctx)
	if err != nil {
		return nil, err
	}
	if !a.Respawned {
		return stateOf(c, a)
	}
	s, err := replacementState(c, ctx, &a)
	if err != nil {
		return nil, err
	}
	s.replaces = a.Addresses
	if s.self.Rank != a.Rank {
		err := fmt.Errorf("this process replaces rank %d, and got rank %d: another process has joined the group at its rank",
			a.Rank, s.self.Rank)
		return nil, errors.Join(err, s.transport.Close())
	}
	return s, nil
}

// replacementState joins the group of the job, under the ID of the process that this one
// replaces. It listens at that one's address, so that a later replacement finds it there,
// unless another program has got the port.
func replacementState(c *Config, ctx context.Context, a *bootstrap.Assignment) (*initialState, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Detection.StartTimeout, defaultStartTimeout))
	defer cancel()
	others := slices.Delete(slices.Clone(a.Addresses), int(a.Rank), int(a.Rank)+1)
	if job.Hosts(a.Addresses) == 1 {
		var leave context.CancelCauseFunc
		ctx, leave = context.WithCancelCause(ctx)
		go watchJob(ctx, leave, others)
	}
	own := a.Addresses[a.Rank]
	c.ID, c.Listen, c.Advertise = own, own, own
	host, port, _ := net.SplitHostPort(own) // checked
	if net.ParseIP(host) == nil && host != "localhost" {
		c.Listen = net.JoinHostPort("", port) // see bootstrap.Assignment.Listener
	}
	s, err := joinState(c, ctx, others, nil)
	if errors.Is(err, syscall.EADDRINUSE) && c.Listen == own {
		c.Listen, c.Advertise = net.JoinHostPort(host, "0"), ""
		s, err = joinState(c, ctx, others, nil)
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, engine.ErrGone) {
		return nil, cause
	}
	return s, err
}

// watchJob gives up looking for a job on this host whose processes all refuse connections:
// the kernel knows that they have ended.
func watchJob(ctx context.Context, leave context.CancelCauseFunc, addresses []string) {
	for refusals := 0; refusals < 3; refusals++ {
		select {
		case <-time.After(lookInterval):
		case <-ctx.Done():
			return
		}
		if slices.ContainsFunc(addresses, listens) {
			refusals = -1
		}
	}
	leave(engine.ErrGone)
}

// lookInterval is how often a replacement checks whether its job still runs, until it has joined.
const lookInterval = 250 * time.Millisecond

// listens reports whether a process listens at an address, or the host does not tell.
func listens(address string) bool {
	conn, err := net.DialTimeout("tcp", address, lookInterval)
	if err == nil {
		_ = conn.Close()
	}
	return !errors.Is(err, syscall.ECONNREFUSED)
}

// defaultStartTimeout is how long a replacement looks for its job.
const defaultStartTimeout = 30 * time.Second

// job returns the IDs of the job's processes, by rank. They are the addresses that the
// processes had at the start.
func (s *initialState) job() []string {
	if s.replaces != nil {
		return s.replaces
	}
	ids := make([]string, s.view.Slots)
	for _, m := range s.view.Members.All() {
		ids[m.Rank] = m.Identity
	}
	return ids
}
