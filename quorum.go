package pleach

// A job on several hosts continues only with a quorum, because a process that is cut off
// would otherwise finish the whole job beside the others. This file decides which jobs
// need one, and ends the process that has lost it.

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/door"
)

// Defaults of a World on several hosts. A process that is removed from a job cannot come
// back, so it may be silent for as long as TCP lets its host be.
const (
	defaultQuorumTimeout  = 30 * time.Second
	worldSuspicionTimeout = 10 * time.Second
)

// requireQuorum decides whether the processes of a job continue only with a quorum: if
// they are on several hosts, and the program does not allow otherwise.
func requireQuorum(c *Config, job []string) {
	c.QuorumTimeout = cmp.Or(c.QuorumTimeout, defaultQuorumTimeout)
	switch hosts := hostCount(job); {
	case hosts == 1:
		c.AllowMinority = true
	case c.AllowMinority:
		c.Logger.Warn("AllowMinority: if the network between the hosts is partitioned, each part finishes the whole job, and fencing tokens do not tell their outputs apart",
			"hosts", hosts, "processes", len(job))
	default:
		c.SuspicionTimeout = cmp.Or(c.SuspicionTimeout, max(worldSuspicionTimeout, 5*c.HeartbeatInterval))
	}
}

// hostCount counts the hosts in the processes' addresses. Two names of one host count as
// two, which is safe.
func hostCount(addresses []string) int {
	hosts := make(map[string]bool)
	for _, a := range addresses {
		hosts[door.HostOf(a)] = true
	}
	return len(hosts)
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
	return &jobError{fmt.Sprintf("%s, for %v; this process has left the job: if the others do not finish it, start it again", text, after), lost}
}

// isolatedError is the error of a process that has reached no other one of its job.
func isolatedError(view uint64, size int) error {
	return &jobError{
		fmt.Sprintf("%v: none of the other processes was reached since the start (%d); check their addresses, and that no firewall is between the hosts", ErrNoQuorum, size-1),
		&QuorumError{View: view, Reachable: 1, Needed: size/2 + 1},
	}
}
