package collective

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// World is where collectives run: a [*github.com/pleach-go/pleach.World], or a
// [Place].
type World interface {
	place() Place
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
	config Config
	ctx    context.Context // of what runs beside calls
	cancel context.CancelFunc
	work   sync.WaitGroup
	clerk  clerk
	paper  paper
	lender Lender // the link, if it is one
	choose choices
	watch  watch

	mu     sync.Mutex
	view   uint64
	live   []int // ranks in the view; nil: all
	owners []int // by task; nil: everybody has its own
	ops    map[uint64]*op
	next   uint64 // the number of the next call
	// returned: this process's own calls before it are over. finished: and the
	// parts of the tasks that it has taken over. floor: everywhere, as far as is
	// known here.
	returned, finished, floor uint64
	kept                      int             // bytes in letters
	heard                     map[int]*status // see of
	last                      signature       // of the last call
	over                      over            // the last one that is

	gone      map[int]uint64 // by rank: the first view without it
	acked     uint64         // failures up to this view have been acknowledged
	revokedBy int            // -1: nobody has
	// strayed says that a call has ended with an error here. Others may have
	// finished it, and gone on: numbers of calls mean less from then on.
	strayed bool
	pacts   map[uint64]*pact
	begun   uint64        // pacts
	turn    chan struct{} // held by the one pact that is under way

	family *family
	name   uint64 // of this world, in the family
	ranks  []int  // by rank: that in the family's first world; nil: the same
	inner  []*Engine

	err   error // why nothing goes any more
	moved bell  // rings when floor has risen, or it is all over
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
	e := &Engine{family: &family{link: c.Link, worlds: make(map[uint64]*Engine)}}
	e.start(c)
	return e, nil
}

// start begins a world of which its place in the family is known.
func (e *Engine) start(c Config) {
	e.config, e.view, e.acked, e.revokedBy = c, c.View, c.View, -1
	e.ops, e.pacts = make(map[uint64]*op), make(map[uint64]*pact)
	e.heard, e.gone = make(map[int]*status), make(map[int]uint64)
	e.turn = make(chan struct{}, 1)
	e.lender, _ = c.Link.(Lender)
	e.choose = standardChoices()
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.clerk.init()
	e.work.Go(e.serve)
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
	for _, o := range e.ops {
		o.end(e.err)
	}
	for _, w := range e.inner {
		w.End(cause)
	}
	e.cancel()
	e.moved.give()
}

// Close ends the engine, and returns when nothing of it runs any more.
func (e *Engine) Close() {
	e.End(ErrClosed)
	e.work.Wait()
	for _, w := range e.inner { // nobody adds any more
		w.Close()
	}
}
