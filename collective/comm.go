package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Communicator is where collectives run: a [*github.com/pleach-go/pleach.World], or a
// [Comm].
type Communicator interface {
	comm() Comm
}

// core is the engine's communicator. Comm has its underlying type, so that package
// pleach can convert one into the other, and no constructor needs to be exported.
type core = engine.Comm

// Comm is a communicator: a fixed set of processes and tasks that make collective calls
// together. Ranks and tasks count from 0. A [*github.com/pleach-go/pleach.World] embeds
// one; [Comm.Shrink], [Comm.Split] and [Comm.Reserve] return others.
type Comm core

func (c Comm) comm() Comm { return c }

// do makes a call.
func (c Comm) do(ctx context.Context, s engine.Signature, run func(*engine.Task) error) error {
	return c.publicError(core(c).Do(ctx, s, run))
}

// Reserve takes the place of the next call in the common order, for one call that is
// made on the returned Comm, by another goroutine. Calls then run concurrently, although
// all processes have reserved them in the same order.
//
//	later := world.Reserve()
//	go func() { sum, err = collective.Allreduce(ctx, later, mine, op) }()
//
// The call has to be made, because the other processes wait for it.
func (c Comm) Reserve() Comm { return Comm(core(c).Reserve()) }

// Rank returns this process's rank.
func (c Comm) Rank() int { return core(c).Rank() }

// Size returns the number of tasks, which is the number of processes at the start. It does
// not change when processes die; Failed tells how many have.
func (c Comm) Size() int { return core(c).Size() }

// Owner returns the rank of the process that runs a task now: at first the rank of the
// same number, and a survivor after that process has failed.
func (c Comm) Owner(task int) int { return core(c).Owner(task) }

// Tasks returns the tasks that this process owns now, its own among them.
func (c Comm) Tasks() []int { return core(c).Tasks() }

// FencingToken returns a number that guards what a task writes to the world outside, and
// whether this process owns the task now (a fencing token, Kleppmann 2016; the sequencer of
// Chubby, Burrows 2006). It is the number of the view: the same on all processes of a view,
// and higher on the process that takes a task over than it ever was on the owner before.
//
// A process that was removed from the view may not know it yet, and may still write. So a
// program passes the token with each write, and the storage refuses a write whose token is
// lower than one that it has seen for the task. It has to compare and write in one step. The
// token and the ownership belong together; ask for both again before each write.
func (c Comm) FencingToken(task int) (token uint64, owned bool) {
	return core(c).FencingToken(task)
}

// Failed returns the ranks that are no longer in the view.
func (c Comm) Failed() []int { return core(c).Failed() }

// AckFailed acknowledges all failures that this process knows of, and returns their
// ranks. An [Agree] with [Report] no longer reports a failure that all processes have
// acknowledged. AckFailed is MPI_Comm_failure_ack and MPI_Comm_failure_get_acked of ULFM
// in one. Other calls with [Report] still end with a [*FailedError]; [Comm.Shrink] derives a
// communicator without failed processes.
func (c Comm) AckFailed() []int { return core(c).AckFailed() }

// Revoke ends every call of the communicator that is in progress on any process, and
// every later one, with a [*RevokedError]. [Agree] and [Comm.Shrink] still work; they are what
// a program calls next. So a process that has noticed a failure gets the others out of
// calls in which they would wait. Communicators that [Comm.Shrink] has derived before are not
// revoked.
//
// Revoke is MPI_Comm_revoke of ULFM: one process calls it, and it does not block. All
// live processes learn of it, even if that process dies, unless it dies before any live
// process has learned.
func (c Comm) Revoke() { core(c).Revoke() }

// WorldRank returns the rank that a member of this communicator has in the world that
// pleach.NewWorld has returned. They differ only in communicators derived by [Comm.Shrink] and [Comm.Split].
func (c Comm) WorldRank(rank int) int { return core(c).WorldRank(rank) }
