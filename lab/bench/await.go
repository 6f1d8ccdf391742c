package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// Timeout is how long processes may take to start and to answer.
const Timeout = 20 * time.Second

// ErrTimeout is returned by [Await] at its limit.
var ErrTimeout = errors.New("too late")

// pause is how long [Await] sleeps. Waking at every single record would take the
// processor from members that are not done.
const pause = 300 * time.Microsecond

// Await reads records until there are enough. It fails if a process of the system
// has ended. Ranks without a process are nil.
func Await(ctx context.Context, limit time.Duration, system string, processes []*launch.Process, r *Reports,
	take func(Record), enough func() bool,
) error {
	deadline := time.Now().Add(limit)
	for !enough() {
		some, err := r.Read(take)
		if err == nil && !some {
			err = EndedError(system, processes)
		}
		switch {
		case err != nil:
			return err
		case some:
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return ErrTimeout
		}
		time.Sleep(pause)
	}
	return nil
}

// EndedError says which process has ended that should run, or is nil.
func EndedError(system string, processes []*launch.Process) error {
	if rank, p, ok := launch.FirstEnded(processes); ok {
		return fmt.Errorf("bench: %s: the process of rank %d has ended: %v", system, rank, p.State())
	}
	return nil
}
