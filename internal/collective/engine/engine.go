package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/collective/loggp"
)

// Link sends an engine's messages to the other members.
type Link interface {
	// Send sends a message, head followed by body, to a member. The link keeps
	// both until they have arrived, so they must not change. A message arrives
	// exactly once as long as both members are in the view. Send blocks while too
	// many bytes are queued. It fails if ctx ends or the member has left.
	Send(ctx context.Context, to int, head, body []byte) error
}

// ZeroCopyLink is a [Link] that reports when it no longer needs the memory of a
// message, so that the engine can reuse it.
type ZeroCopyLink interface {
	Link
	// SendOwned is like Send. If it returns nil, the link owns head and body until
	// it calls release, once. release does not block. A link that is closed before
	// the message has arrived does not call it.
	SendOwned(ctx context.Context, to int, head, body []byte, release func()) error
}

// FlushingLink is a [Link] that knows what has arrived.
type FlushingLink interface {
	Link
	// Flush returns when everything that was sent has arrived.
	Flush(ctx context.Context) error
}

// Config configures an engine.
type Config struct {
	// Rank is this process's rank among Size processes.
	Rank, Size int
	Link       Link
	// View is the number of the first view, which holds all ranks.
	View uint64
	// Waiting, if not zero, is the incarnation of a process that replaces a failed one:
	// it makes no other call before [Comm.Admit] has returned. View is then zero.
	Waiting uint64
	// KeepCalls limits how many calls this process may be ahead of the slowest
	// one. If zero, 256. Beyond it, calls block. A call that is so far ahead of one that
	// is held fails.
	KeepCalls int
	// KeepBytes limits the message log. If zero, 256 MiB. Beyond it, calls block
	// until the slowest process has caught up, and fail if that much is held.
	KeepBytes int
	// Placement says which tasks share a host. If nil, all do. All processes have the same.
	Placement *Placement
	// Network is what messages cost, by which algorithms are selected. Figures that are
	// zero are those of [loggp.Standard]. All processes have the same.
	Network loggp.Network
	// Thresholds select algorithms instead, if not zero.
	Thresholds Thresholds
	// PollTime is how long a call that waits for a message polls a [PollingLink] before
	// it blocks. If zero, up to 1 ms, and less often if other work needs the processor. If
	// negative, calls do not poll.
	PollTime time.Duration
	// ProgressTimeout is how long a call waits for a process that makes no progress before it
	// has that process removed. If zero, it waits without a bound.
	ProgressTimeout time.Duration
	// Evict, if not nil, has a process removed from the view, by its rank in the world. It is
	// called with the engine's lock held, and does not block.
	Evict func(rank int, why error)
	// Poison, if not nil, is called with memory that returns to the buffer pool.
	// Tests overwrite the memory to find readers that use it after release.
	Poison func([]byte)
}

// withDefaults checks a config and fills in what is zero.
func (c Config) withDefaults() (Config, error) {
	if c.Rank < 0 || c.Rank >= c.Size || c.Link == nil {
		return c, fmt.Errorf("collective: rank %d of %d, link %v", c.Rank, c.Size, c.Link)
	}
	if c.KeepCalls < 0 || c.KeepBytes < 0 {
		return c, fmt.Errorf("collective: KeepCalls %d, KeepBytes %d", c.KeepCalls, c.KeepBytes)
	}
	if c.KeepCalls == 0 {
		c.KeepCalls = 256
	}
	if c.KeepBytes == 0 {
		c.KeepBytes = 256 << 20
	}
	if p := c.Placement; p != nil && len(p.host) != c.Size {
		return c, fmt.Errorf("collective: %d tasks, %d of them placed", c.Size, len(p.host))
	}
	return c, nil
}

// Engine is one process's part in all collective calls of a communicator. The package
// comment says how it works.
type Engine struct {
	config     Config
	thresholds [levels]Thresholds
	selection  uint64       // what they come from, for signatures
	zeroCopy   ZeroCopyLink // the link, if it is one
	polling    PollingLink  // the link as a PollingLink; nil if it is none
	pool       BufferPool
	entries    logEntries
	began      time.Time
	digestSeed maphash.Seed
	ctx        context.Context // of background work
	cancel     context.CancelFunc
	work       sync.WaitGroup
	finalizing atomic.Bool // see [Engine.Finalize]

	mu         sync.Mutex // guards everything below
	err        error      // why the engine has ended
	calls      callTable
	log        messageLog
	peers      peers
	queries    queries
	holds      holds
	agreements agreements
	revokedBy  int // -1: the communicator is not revoked
	// diverged says that a call has ended with an error here. Other processes may
	// have completed it, so call numbers are no longer comparable.
	diverged bool
	// divergence, if not nil, is that a task was restored with another input than it
	// had, so that results are no longer the same everywhere. It ends every call.
	divergence *DivergedError
	comms      comms
	generation generation
	sender     sender
	watchdog   watchdog
	looker     looker
	lateness   lateness // of the processes that corrected calls wait for
}

// New returns an engine. [Engine.Close] ends it.
func New(c Config) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{comms: comms{registry: &commRegistry{link: c.Link, nested: make(map[uint64]*Engine)}}}
	e.start(c)
	e.generation.before, e.generation.begun = c.View, c.Waiting == 0
	if c.Waiting != 0 {
		e.peers.owners = slices.Repeat([]int{-1}, c.Size) // it does not know them
	}
	return e, nil
}

// start initializes an engine whose comms are set.
func (e *Engine) start(c Config) {
	e.config, e.revokedBy = c, -1
	e.thresholds, e.selection = c.thresholds(), c.selection()
	e.zeroCopy, _ = c.Link.(ZeroCopyLink)
	e.polling, _ = c.Link.(PollingLink)
	e.looker.init(&c)
	e.pool.poison, e.entries.poison, e.digestSeed = c.Poison, c.Poison, maphash.MakeSeed()
	e.began = time.Now()
	e.calls.byNumber = make(map[uint64]*callState)
	e.peers.init(c.Rank, c.Size, c.View)
	e.generation.init(c)
	e.agreements.init()
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.sender.init()
	e.work.Go(e.runSender)
}

// Finalize notes that the program has made its last call: agreements are the end of the job
// from now on, and errors call them so.
func (e *Engine) Finalize() { e.finalizing.Store(true) }

// End fails all calls, present and future, with cause: this process is no longer in
// the view, or the link is closed.
func (e *Engine) End(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop(cause)
	for _, n := range e.comms.nested {
		n.End(cause)
	}
}

// stop fails all calls of this very communicator.
func (e *Engine) stop(cause error) {
	if e.err != nil {
		return
	}
	e.err = fmt.Errorf("collective: rank %d in view %d: %w", e.config.Rank, e.peers.view, cause)
	for _, o := range e.calls.byNumber {
		o.end(e.err)
	}
	e.cancel()
	e.log.advanced.Notify()
}

// Close ends the engine and waits for its goroutines.
func (e *Engine) Close() {
	e.End(ErrClosed)
	e.work.Wait()
	for _, n := range e.comms.nested { // complete: an ended engine adds none
		n.Close()
	}
}

// now returns the time since the engine began, which is cheaper to have than the time of day.
// It is never 0.
func (e *Engine) now() time.Duration { return time.Since(e.began) + 1 }

// Buffer returns memory for a message that is to be passed to [Engine.Receive].
func (e *Engine) Buffer(n int) []byte { return e.pool.get(n) }
