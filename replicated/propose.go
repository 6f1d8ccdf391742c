package replicated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/session"
)

// maxPending is how many proposals of a process may wait for their results; Propose and Read
// block beyond it.
const maxPending = 1024

// ErrForgotten is returned by Propose and Read if the group has forgotten this process, because
// more than 1,024 others have proposed since it last did. It is not known whether the command was
// applied. The next call uses a new ID.
var ErrForgotten = errors.New("replicated: the group has forgotten this process")

// ErrNoMachine is returned by Propose for a name that Config.Machines does not have.
var ErrNoMachine = errors.New("replicated: no machine of that name")

// proposal is a command, or a read, that waits for its result.
type proposal struct {
	machine string // empty: a read
	command []byte
	read    func()
	done    chan session.Outcome

	mu        sync.Mutex
	abandoned bool // the caller no longer waits
}

// finish gives the caller its result. A read is made first, by the goroutine that applies
// commands.
func (p *proposal) finish(o session.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.abandoned {
		return
	}
	if p.read != nil && !o.Forgotten {
		p.read()
	}
	p.done <- o
}

// abandon says that the caller no longer waits, because of err.
func (p *proposal) abandon(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandoned = true
	return fmt.Errorf("replicated: %w", err)
}

// Propose has all members apply a command to the machine of a name, in one order with all others,
// and returns the result of its Apply in this process. The caller may reuse command, and must not
// change the result.
//
// Propose blocks until this process has applied the command, even while there is no quorum: the
// error is [pleach.ErrNoQuorum] as well as that of ctx if ctx ends meanwhile. If ctx ends first, or
// this process is no longer a member, the command may be applied or not. It is applied once at most
// in any case.
func (r *Replica) Propose(ctx context.Context, machine string, command []byte) ([]byte, error) {
	if _, ok := r.machines[machine]; !ok {
		return nil, fmt.Errorf("%w: %q", ErrNoMachine, machine)
	}
	if most := r.order.MaxMessage() - session.Head; len(command) > most {
		return nil, fmt.Errorf(
			"replicated: a command of %d bytes is too long: %d at most (half of the lowest Limits.MaxMessage)",
			len(command), most)
	}
	return r.propose(ctx, &proposal{machine: machine, command: slices.Clone(command)})
}

// Read calls f between two commands, when this process has applied all commands that Propose had
// returned for, in any process, when Read was called. So f reads the machines as they are: reads
// are linearizable. f returns soon, and must not call Propose or Read. It is not called any more
// when Read has returned.
func (r *Replica) Read(ctx context.Context, f func()) error {
	_, err := r.propose(ctx, &proposal{read: f})
	return err
}

// propose waits for the outcome of a proposal.
func (r *Replica) propose(ctx context.Context, p *proposal) ([]byte, error) {
	p.done = make(chan session.Outcome, 1)
	if err := r.enqueue(ctx, p); err != nil {
		return nil, fmt.Errorf("replicated: %w", err)
	}
	select {
	case o := <-p.done:
		if o.Forgotten {
			return nil, ErrForgotten
		}
		return o.Result, nil
	case <-ctx.Done():
		return nil, p.abandon(r.waited(ctx.Err()))
	case <-r.life.Done():
		return nil, p.abandon(r.Err())
	}
}

// waited returns why a call has waited until its context ended: the group may have no quorum.
func (r *Replica) waited(err error) error {
	if v := r.order.Group().View(); v.Err != nil {
		return fmt.Errorf("%w: %w", v.Err, err)
	}
	return err
}

// enqueue gives a proposal its number and has it sent, as soon as there is room.
func (r *Replica) enqueue(ctx context.Context, p *proposal) error {
	for {
		room := r.room.Wait()
		r.mu.Lock()
		if r.client.Pending() < maxPending {
			r.client.Propose(p.machine, p.command, p)
			r.proposals.Proposed++
			r.mu.Unlock()
			notify.Signal(r.unsent)
			return nil
		}
		r.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return r.waited(ctx.Err())
		case <-r.life.Done():
			return r.Err()
		}
	}
}

// send broadcasts proposals, in the order of their numbers.
func (r *Replica) send() {
	for {
		select {
		case <-r.unsent:
		case <-r.life.Done():
			return
		}
		for {
			r.mu.Lock()
			machine, data, ok := r.client.Next()
			r.mu.Unlock()
			if !ok {
				break
			}
			if r.order.Broadcast(r.life, machine, data) != nil {
				return // this process is no longer a member
			}
		}
	}
}
