package engine

import (
	"context"
	"fmt"
	"time"
)

// Comm is a communicator: the handle by which a program uses an engine.
//
// Package collective declares its public Comm with this underlying type, so that
// package pleach can convert one into the other without an exported constructor.
type Comm struct {
	engine *Engine
	ticket *ticket // nil: each call takes the next number
}

// ticket is the reserved number of a call that is yet to be made.
type ticket struct {
	number uint64
	used   bool
}

// Comm returns the engine's communicator.
func (e *Engine) Comm() Comm { return Comm{engine: e} }

// Engine returns the communicator's engine.
func (c Comm) Engine() *Engine { return c.engine }

// Reserve takes the next call number, for one call on the returned communicator.
func (c Comm) Reserve() Comm {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls.next++
	return Comm{e, &ticket{number: e.calls.next - 1}}
}

// takeNumber returns the number of the call that is made now.
func (c Comm) takeNumber() (uint64, error) {
	t := c.ticket
	switch {
	case t == nil:
		c.engine.calls.next++
		return c.engine.calls.next - 1, nil
	case t.used:
		return 0, fmt.Errorf("collective: call %d was reserved once, and is made twice", t.number)
	}
	t.used = true
	return t.number, nil
}

// Reserved reports whether the communicator is for one call only.
func (c Comm) Reserved() bool { return c.ticket != nil }

// Thresholds returns the thresholds that select algorithms.
func (c Comm) Thresholds() *Thresholds { return &c.engine.thresholds[everywhere] }

// Do makes a call: it runs this process's own task, and waits until the parts of the
// tasks that this process has taken over are done too.
func (c Comm) Do(ctx context.Context, s Signature, run func(*Task) error) error {
	o, err := c.begin(ctx, s, run)
	if err != nil {
		return err
	}
	err = c.engine.await(ctx, o, run(&o.task))
	if _, ok := err.(*MismatchError); ok {
		c.engine.flushNotices(ctx)
	}
	return err
}

// noticesTimeout bounds how long a call that has found a mismatch waits until the other processes
// have its notices: the program is about to exit, and must not look like one that has died. It is
// as long as Close may take, because other processes may be starved of CPU.
const noticesTimeout = 2 * time.Second

// flushNotices returns when the other processes have this process's notices, or at a timeout. They
// treat a process that ends earlier as one that has failed.
func (e *Engine) flushNotices(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, noticesTimeout)
	defer cancel()
	if f, ok := e.comms.registry.link.(FlushingLink); ok && e.Flush(ctx) == nil {
		_ = f.Flush(ctx)
	}
}

// Rank returns this process's rank.
func (c Comm) Rank() int { return c.engine.config.Rank }

// Size returns the number of tasks.
func (c Comm) Size() int { return c.engine.config.Size }

// Owner returns the rank of the process that runs a task now.
func (c Comm) Owner(task int) int {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.engine.peers.owner(task)
}

// Tasks returns the tasks that this process owns now.
func (c Comm) Tasks() []int {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.engine.peers.ownedBy(c.engine.config.Rank)
}

// FencingToken returns the number of the view, and whether this process owns a task in it.
func (c Comm) FencingToken(task int) (token uint64, owned bool) {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	p := &c.engine.peers
	return p.view, task >= 0 && task < p.size && p.owner(task) == c.engine.config.Rank
}

// Failed returns the ranks that are no longer in the view.
func (c Comm) Failed() []int {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.engine.peers.failed()
}

// AckFailed acknowledges all failures that are known here, and returns their ranks.
func (c Comm) AckFailed() []int {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	c.engine.peers.acked = c.engine.peers.view
	return c.engine.peers.failed()
}

// WorldRanks returns the ranks of the outermost communicator by those of this one; nil: they
// are the same.
func (c Comm) WorldRanks() []int { return c.engine.comms.worldRanks }

// WorldRank returns the rank that a member has in the outermost communicator.
func (c Comm) WorldRank(rank int) int { return c.engine.worldRank(rank) }

// Revoke ends all calls of the communicator, on all members.
func (c Comm) Revoke() {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	c.engine.revoke(c.engine.config.Rank)
}

// Progress reports what this process does, in this communicator and in those that
// Shrink has derived from it.
func (c Comm) Progress() []Progress {
	all := c.engine.progress()
	if extra := len(all) - maxReportedComms; extra > 0 {
		all = all[extra:]
	}
	return all
}

// Err returns why the engine has ended, or nil.
func (c Comm) Err() error {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.engine.err
}

// CallNumbers returns the number of the next call and the low-water mark: every process has
// finished the calls before it, so that no input of theirs is restored any more.
func (c Comm) CallNumbers() (next, lowWater uint64) {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return c.engine.calls.next, c.engine.log.lowWater
}

// LoggedCalls returns how many calls this process is ahead of the low-water mark:
// those for which it may have to replay messages.
func (c Comm) LoggedCalls() int {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	return int(c.engine.calls.next - c.engine.log.lowWater)
}
