package pleach

// A job on several hosts continues only with a quorum, because a process that is cut off
// would otherwise finish the whole job beside the others. This file decides which jobs
// need one, and ends the process that has lost it.

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/membership"
)

// Defaults of a World on several hosts. A process that is removed from a job cannot come
// back, so it may be silent for as long as TCP lets its host be.
const (
	defaultQuorumTimeout  = 30 * time.Second
	worldSuspicionTimeout = 10 * time.Second
)

// requireQuorum decides whether the processes of a job continue only with a quorum: if
// they are on several hosts, and the program does not allow otherwise.
func (c *Config) requireQuorum(job *membership.View) {
	c.QuorumTimeout = cmp.Or(c.QuorumTimeout, defaultQuorumTimeout)
	switch hosts := hostCount(job); {
	case hosts == 1:
		c.AllowMinority = true
	case c.AllowMinority:
		c.Logger.Warn("AllowMinority: if the network between the hosts is partitioned, each part finishes the whole job, and fencing tokens do not tell their outputs apart",
			"hosts", hosts, "processes", len(job.Members))
	default:
		c.SuspicionTimeout = cmp.Or(c.SuspicionTimeout, max(worldSuspicionTimeout, 5*c.HeartbeatInterval))
	}
}

// hostCount counts the hosts in the members' addresses. Two names of one host count as
// two, which is safe.
func hostCount(v *membership.View) int {
	hosts := make(map[string]bool)
	for _, m := range v.Members {
		hosts[hostOf(m.Address)] = true
	}
	return len(hosts)
}

// watch ends the engine when this process is no longer a member, and the membership when
// the quorum has been lost for too long.
func (w *World) watch(timeout time.Duration) {
	g := w.group
	expired := time.NewTimer(timeout)
	defer expired.Stop()
	for lost := error(nil); ; {
		changed := g.changed.Wait()
		switch now := g.quorumErr.Load(); {
		case now == nil:
			lost = nil
			expired.Stop()
		case !w.link.reached.Load(): // and StartTimeout has passed
			w.giveUp(isolatedError(g.View().Number, w.Size()))
		case lost == nil:
			lost = *now
			expired.Reset(timeout)
		}
		select {
		case <-changed:
		case <-expired.C:
			w.giveUp(fmt.Errorf("%w; it was lost for %v, so this process leaves the job; if the others do not continue either, start the job again", lost, timeout))
		case err := <-w.link.alone:
			w.giveUp(err)
		case <-g.life.Done():
			w.engine.End(g.Err())
			return
		}
	}
}

// giveUp ends a process that has no quorum. The others see a crash, so that they do not
// wait for it if the network heals later.
func (w *World) giveUp(err error) {
	w.group.log.Error("this process leaves the job", "error", err)
	w.group.end(err)
	w.engine.End(err)
	_ = w.group.Abort()
}

// isolatedError is the error of a process that has reached no other one of its job.
func isolatedError(view uint64, size int) error {
	return fmt.Errorf("%w; this process has reached none of the %d others since the start: check their addresses, and that no firewall is between the hosts",
		&QuorumError{View: view, Reachable: 1, Needed: size/2 + 1}, size-1)
}
