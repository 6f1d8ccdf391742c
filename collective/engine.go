package collective

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pleach-go/pleach/internal/notify"
)

// World is where collectives run: a [*github.com/pleach-go/pleach.World], or a
// [Place].
type Communicator interface {
	comm() Comm
}

// Link carries an engine's messages to the other members.
type Link interface {
	// Send sends a message to a member: head and body, one after the other.
	// Both are kept until they have arrived, and must not be changed. What
	// was sent arrives exactly once, as long as both are in the view; it waits
	// while too much is waiting already, and fails if ctx ends or the member is
	// not there any more.
	Send(ctx context.Context, to int, head, body []byte) error
}

// Config is what an engine is made of. The zero value of every limit is a good
// default.
type Config struct {
	// Rank is this process's, of Size processes, each with a task of its own.
	Rank, Size int
	Link       Link
	// View is the number of the first view. All are in it.
	View uint64
	// KeepCalls is how many calls this process may be ahead of the slowest:
	// 256. KeepBytes is how much of what was sent may be kept for takeovers
	// before calls wait for the slowest: 256 MiB.
	KeepCalls, KeepBytes int
}

// Engine is one process's part in all collectives of a world: it numbers calls,
// carries tasks' messages to whoever owns the receiving task, and lets survivors
// take over. The package comment says how. Programs get one inside a
// [*github.com/pleach-go/pleach.World].
type Engine struct {
	config     Config
	ctx        context.Context // of what runs beside calls
	cancel     context.CancelFunc
	work       sync.WaitGroup
	sender     sender
	pool       bufferPool
	zeroCopy   ZeroCopyLink // the link, if it is one
	algorithms algorithms
	watchdog   watchdog

	mu     sync.Mutex
	view   uint64
	live   []int // ranks in the view; nil: all
	owners []int // by task; nil: everybody has its own
	calls  map[uint64]*callState
	next   uint64 // the number of the next call
	// returned: this process's own calls before it are over. finished: and the
	// parts of the tasks that it has taken over. floor: everywhere, as far as is
	// known here.
	returned, finished, lowWater uint64
	logBytes                     int                 // bytes in letters
	peers                        map[int]*peerStatus // see of
	last                         signature           // of the last call
	lastDone                     finishedCall        // the last one that is

	gone      map[int]uint64 // by rank: the first view without it
	acked     uint64         // failures up to this view have been acknowledged
	revokedBy int            // -1: nobody has
	// strayed says that a call has ended with an error here. Others may have
	// finished it, and gone on: numbers of calls mean less from then on.
	diverged      bool
	agreements    map[uint64]*agreement
	begun         uint64        // pacts
	agreementTurn chan struct{} // held by the one pact that is under way

	registry   *commRegistry
	contextID  uint64 // of this world, in the family
	worldRanks []int  // by rank: that in the family's first world; nil: the same
	nested     []*Engine

	err   error           // why nothing goes any more
	moved notify.Notifier // notifies when floor has risen, or it is all over
}

// NewEngine makes an engine. [Engine.Close] ends it.
func NewEngine(c Config) (*Engine, error) {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size || c.Link == nil {
		return nil, fmt.Errorf("collective: rank %d of %d, link %v", c.Rank, c.Size, c.Link)
	}
	if c.KeepCalls < 0 || c.KeepBytes < 0 {
		return nil, fmt.Errorf("collective: KeepCalls %d, KeepBytes %d", c.KeepCalls, c.KeepBytes)
	}
	if c.KeepCalls == 0 {
		c.KeepCalls = 256
	}
	if c.KeepBytes == 0 {
		c.KeepBytes = 256 << 20
	}
	e := &Engine{registry: &commRegistry{link: c.Link, comms: make(map[uint64]*Engine)}}
	e.start(c)
	return e, nil
}

// start begins a world of which its place in the family is known.
func (e *Engine) start(c Config) {
	e.config, e.view, e.acked, e.revokedBy = c, c.View, c.View, -1
	e.calls, e.agreements = make(map[uint64]*callState), make(map[uint64]*agreement)
	e.peers, e.gone = make(map[int]*peerStatus), make(map[int]uint64)
	e.agreementTurn = make(chan struct{}, 1)
	e.zeroCopy, _ = c.Link.(ZeroCopyLink)
	e.algorithms = standardAlgorithms()
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.sender.init()
	e.work.Go(e.runSender)
}

func (e *Engine) failedRanks() (ranks []int) {
	for r := range e.gone {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	return ranks
}

// End ends all calls, present and future, with an error: the process is not in
// the view any more, or the link is closed.
func (e *Engine) End(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.err = fmt.Errorf("collective: rank %d in view %d: %w", e.config.Rank, e.view, cause)
	for _, o := range e.calls {
		o.end(e.err)
	}
	for _, w := range e.nested {
		w.End(cause)
	}
	e.cancel()
	e.moved.Notify()
}

// Close ends the engine, and returns when nothing of it runs any more.
func (e *Engine) Close() {
	e.End(ErrClosed)
	e.work.Wait()
	for _, w := range e.nested { // nobody adds any more
		w.Close()
	}
}
