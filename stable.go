package pleach

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/driver/rounds"
	"github.com/pleach-go/pleach/protocol"
)

// Receipt proves that members of View have received this process's broadcasts.
type Receipt struct {
	View uint64
	// Members have received all that this process has broadcast before the call and since
	// they joined: they were members when the last of it was broadcast.
	Members []Member
	// Joined are the members of the view that have joined later. They need not have it.
	Joined []Member
}

// UnstableError is returned by [Group.WaitStable] when ctx ends before every member
// has acknowledged.
type UnstableError struct {
	View uint64
	// Unanswered are ranks that have not acknowledged for themselves and for the
	// members below them in the tree.
	Unanswered []int
	// Processed says that members have yet to acknowledge that their programs have processed
	// the broadcasts ([Processed]). Unanswered has this process if its own program has not.
	Processed bool
	Err       error
}

func (e *UnstableError) Error() string {
	what := "stable"
	if e.Processed {
		what = "processed"
	}
	return fmt.Sprintf("pleach: not known to be %s in view %d, no acknowledgment from ranks %v and below: %v", what,
		e.View, e.Unanswered, e.Err)
}

// Unwrap returns the cause.
func (e *UnstableError) Unwrap() error { return e.Err }

// IncompleteError is returned by [Group.WaitStable] when members have lost a part of what
// this process broadcast, because they fell further behind than the others keep
// (Config.Limits.KeepBytes). Their programs got a [*LostError] with the number of messages.
type IncompleteError struct {
	View uint64
	// Ranks are the members known to have lost something, in ascending order.
	Ranks []int
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("pleach: in view %d, ranks %v have lost a part of what was broadcast", e.View, e.Ranks)
}

// A StableOption narrows or widens what [Group.WaitStable] waits for.
type StableOption func(*stableOptions)

type stableOptions struct {
	since     uint64
	processed bool
}

// Since limits a receipt to the broadcasts after a position, which is what [Group.Sent]
// returned before them, or [UnconfirmedError.Last] once the program has dealt with a loss.
func Since(position uint64) StableOption {
	return func(o *stableOptions) { o.since = position }
}

// Processed makes a receipt prove more: the programs of its members have processed the
// messages. Without it, a receipt proves that members have received them, and they may still
// wait for the program.
//
// A message is processed when OnMessage has returned for it, or when the loop over
// [Group.Messages] or [Subscription.Messages] that yielded it asks for the next one. A loop that was
// left by break or return has processed its last message when the program begins another loop
// over the same messages. If several goroutines receive, all of them count. A member with
// several subscriptions answers for all that have messages of this process. A message with a
// topic that a member does not subscribe to, or that waited in a subscription which was closed,
// needs no processing there. A member whose program does not receive never answers, so
// WaitStable returns an [*UnstableError] when its ctx ends.
//
// If this process receives its own messages (Config.Delivery.Echo, [State]), its own program counts, too,
// so it cannot wait for itself in OnMessage or in the loop that receives. Members of release
// 0.1.0 never answer.
func Processed() StableOption { return func(o *stableOptions) { o.processed = true } }

// WaitStable waits until every member of the view has received all that this
// process has broadcast before the call and since the member joined: until those messages
// are stable. A member
// that dies meanwhile is waited for until a view without it is installed. Members
// acknowledge on request only, so broadcasts cost no acknowledgments.
//
// A receipt covers the broadcasts of all memberships of this Group (Config.Recovery.Rejoin,
// [Group.Rejoin]). If a membership ended before its broadcasts were known to be stable, the
// error is an [*UnconfirmedError] that lists them, in this call and in every later one, until
// the caller excludes them by [Since]. A call that waits while its membership ends returns
// the error that ended it, as [Group.Err] does.
//
// A member that has lost a part of what this process broadcast since it joined is
// never in a receipt: while it is in the view, the error is a [*IncompleteError]. If ctx
// ends first, the error is an [*UnstableError].
func (g *Group) WaitStable(ctx context.Context, options ...StableOption) (Receipt, error) {
	var o stableOptions
	for _, option := range options {
		option(&o)
	}
	s, unconfirmed := g.unconfirmed.since(g, &o)
	if unconfirmed != nil {
		return Receipt{}, unconfirmed
	}
	return s.receipts.waitStable(ctx, o.processed)
}

// receipts waits until broadcasts of this process are stable. Its fields are used within node.Do.
type receipts struct {
	*core
	sender    *sender
	stable    uint64 // stream.Stable() after the previous step
	processed uint64 // stream.Processed() after the previous step
	lossy     int    // members in stream.Incomplete() after the previous step
}

func (p *receipts) waitStable(ctx context.Context, processed bool) (Receipt, error) {
	var receipt Receipt
	var upTo uint64
	if err := p.sender.flush(ctx); err != nil {
		if ctx.Err() != nil {
			err = p.unstable(processed, err)
		}
		return receipt, err
	}
	var sentIn uint64
	if p.node.Do(func(now protocol.Time) {
		upTo, sentIn = p.machine.Poll(now), p.sender.sentIn
		if processed {
			p.machine.PollProcessed(now)
		}
	}) != nil {
		return receipt, ErrClosed
	}
	for {
		changed := p.changed.Wait()
		var incomplete []int
		_ = p.node.Do(func(protocol.Time) {
			if p.stream.Stable() >= upTo && (!processed || p.stream.Processed() >= upTo) {
				receipt = p.receipt(sentIn)
				return
			}
			incomplete = ranksOf(p.stream.Incomplete())
		})
		switch {
		case receipt.View != 0:
			return receipt, nil
		case incomplete != nil:
			return receipt, &IncompleteError{p.View().Number, incomplete}
		}
		select {
		case <-changed:
		case <-p.life.Done():
			return receipt, p.Err()
		case <-ctx.Done():
			return receipt, p.unstable(processed, ctx.Err())
		}
	}
}

// noteStable wakes those who wait for a receipt, if more is stable or known to be lost after a step.
// It is called within node.Do.
func (p *receipts) noteStable() {
	stable, processed, lossy := p.stream.Stable(), p.stream.Processed(), len(p.stream.Incomplete())
	if stable != p.stable || processed != p.processed || lossy != p.lossy {
		p.stable, p.processed, p.lossy = stable, processed, lossy
		p.changed.Notify()
	}
}

// unstable returns the error of a receipt that did not come in time.
func (p *receipts) unstable(processed bool, err error) *UnstableError {
	e := &UnstableError{View: p.View().Number, Err: err}
	_ = p.node.Do(func(protocol.Time) {
		e.Unanswered = ranksOf(p.stream.Unanswered())
		if processed && len(e.Unanswered) == 0 {
			e.Unanswered, e.Processed = ranksOf(p.stream.Unprocessed()), true
		}
	})
	return e
}

func ranksOf(from []protocol.Rank) (ranks []int) {
	for _, r := range from {
		ranks = append(ranks, int(r))
	}
	return ranks
}

// receipt names the members of the view: those that had joined when the last broadcast was
// written, and the others.
func (p *receipts) receipt(sentIn uint64) Receipt {
	v := p.View()
	r := Receipt{View: v.Number}
	for _, m := range v.Members() {
		if m.Incarnation <= sentIn || sentIn == 0 || p.config.Static {
			r.Members = append(r.Members, m)
		} else {
			r.Joined = append(r.Joined, m)
		}
	}
	return r
}

// Unconfirmed lists broadcasts of a membership that ended before they were known to be
// stable. Each of them has reached all other members, some, or none.
type Unconfirmed struct {
	// First and Last are positions of broadcasts, counted from 1 over all memberships of
	// this Group ([Group.Sent]).
	First, Last uint64
	// View is the last view of the membership, and Rank the rank of this process in it.
	View uint64
	Rank int
	// Err is why the membership ended.
	Err error
}

// UnconfirmedError is returned by [Group.WaitStable] when broadcasts of earlier memberships
// of this Group were not known to be stable when those memberships ended.
type UnconfirmedError struct {
	// Memberships are the memberships with such broadcasts, oldest first.
	Memberships []Unconfirmed
	// Processed says that the receipt was to prove that the broadcasts were processed
	// ([Processed]): all members may have received them.
	Processed bool
}

// maxUnconfirmed bounds the memberships that a Group lists. The two oldest become one.
const maxUnconfirmed = 64

func (e *UnconfirmedError) Error() string {
	var b strings.Builder
	what := "may be missing at other members"
	if e.Processed {
		what = "may not have been processed by other members"
	}
	fmt.Fprintf(&b, "pleach: %d broadcasts of earlier memberships %s:", e.Messages(), what)
	for i, m := range e.Memberships {
		if i == 3 {
			fmt.Fprintf(&b, " and those of %d more memberships;", len(e.Memberships)-i)
			break
		}
		fmt.Fprintf(&b, " positions %d to %d, sent as rank %d up to view %d (%v);", m.First, m.Last, m.Rank, m.View, m.Err)
	}
	fmt.Fprintf(&b, " repeat them if needed, then call WaitStable with Since(%d)", e.Last())
	return b.String()
}

// Messages returns how many broadcasts are listed.
func (e *UnconfirmedError) Messages() (n uint64) {
	for _, m := range e.Memberships {
		n += m.Last - m.First + 1
	}
	return n
}

// Last returns the position of the last broadcast listed. [Since] this position, receipts
// cover none of them.
func (e *UnconfirmedError) Last() uint64 { return e.Memberships[len(e.Memberships)-1].Last }

// unconfirmed counts the broadcasts of the memberships that have ended.
type unconfirmed struct {
	mu     sync.Mutex
	before uint64 // broadcasts of all memberships before the present one
	// received lists those that members may not have received, and processed those that their
	// programs may not have processed.
	received, processed []Unconfirmed
}

// Sent returns how many broadcasts this process has made, over all memberships of this Group
// and in all topics: the position of the last one. A broadcast that was accepted counts, even
// if its call has returned an error since.
func (g *Group) Sent() uint64 {
	g.unconfirmed.mu.Lock()
	defer g.unconfirmed.mu.Unlock()
	s, n := g.session(), g.unconfirmed.before
	s.node.Look(func() { n += s.stream.Accepted() })
	return n
}

// begin begins a membership, and counts the broadcasts of the one before, whose node is closed.
func (u *unconfirmed) begin(g *Group, next *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old := g.session(); old != nil {
		u.end(old)
	}
	g.current.Store(next)
}

func (u *unconfirmed) end(old *session) {
	var accepted, proven, processed uint64
	old.node.Look(func() {
		accepted, proven, processed = old.stream.Accepted(), old.stream.Proven(), old.stream.ProvenProcessed()
	})
	m := Unconfirmed{Last: u.before + accepted, View: old.view.Load().Number, Rank: old.Rank(), Err: old.Err()}
	m.First = u.before + proven + 1
	u.received = appendUnconfirmed(u.received, m)
	m.First = u.before + min(proven, processed) + 1
	u.processed = appendUnconfirmed(u.processed, m)
	u.before += accepted
}

// appendUnconfirmed adds a membership to a list, if it has such broadcasts.
func appendUnconfirmed(list []Unconfirmed, m Unconfirmed) []Unconfirmed {
	if m.First > m.Last {
		return list
	}
	list = append(list, m)
	if len(list) > maxUnconfirmed {
		list[1].First = list[0].First
		list = list[1:]
	}
	return list
}

// since returns the present membership, and an error if broadcasts after a position and before
// this membership have no receipt of the kind that is asked for.
func (u *unconfirmed) since(g *Group, o *stableOptions) (*session, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	e, list := UnconfirmedError{Processed: o.processed}, u.received
	if o.processed {
		list = u.processed
	}
	for _, m := range list {
		m.First = max(m.First, o.since+1)
		if m.First <= m.Last {
			e.Memberships = append(e.Memberships, m)
		}
	}
	if e.Memberships == nil {
		return g.session(), nil
	}
	return nil, &e
}

// noteProcessed passes on what the program has processed, if a member waits for it. It must not
// be called within node.Do.
func (c *consumers) noteProcessed() {
	if c.awaited.Load() {
		_ = c.node.Do(c.reportProcessed)
	}
}

// reportProcessed tells the machine what the program has processed. It is called within node.Do.
func (c *consumers) reportProcessed(now protocol.Time) {
	c.machine.NoteProcessed(now, 0, c.receiver.progress.Position())
	for id, t := range c.receiver.topics {
		c.machine.NoteProcessed(now, id, t.progress.Position())
	}
}

// consumers is what a member knows of the program that receives.
type consumers struct {
	*core
	receiver *receiver
	direct   *directs
	current  *rounds.Rounds // finds out whether this process is current; nil: the group is static
	awaited  atomic.Bool    // a member waits for the program to process something
	// The following are used within node.Do.
	lookDue     protocol.Time // when to look at the progress of the program
	stuckTopics []string      // the topics of stuck queues, at that look
}

// awaitsProgram reports whether somebody waits for the program to process something.
func (c *consumers) awaitsProgram() bool {
	return c.stream.AwaitsProgram() || c.current != nil && c.current.Waits()
}

// StuckConsumer is a queue of messages whose program makes no progress.
type StuckConsumer struct {
	// Topic is that of the [Subscription]. If empty, it is Messages or OnMessage.
	Topic string `json:"topic,omitempty"`
	// Since is when the program last processed a message, or had none to process.
	Since time.Time `json:"since"`
	// Waiting counts the messages and markers that are not processed.
	Waiting int `json:"waiting"`
}

// consumerInterval is how often a member looks at the progress of its program.
const consumerInterval = protocol.Time(250 * time.Millisecond)

// watchProgram looks at the progress of the program. It is called within node.Do.
func (c *consumers) watchProgram(now protocol.Time) {
	if c.current != nil {
		c.current.Look()
	}
	if c.awaitsProgram() {
		c.awaited.Store(true) // first: what the program processes from here on, it reports
		c.reportProcessed(now)
		if c.current != nil {
			c.current.Look()
		}
	}
	c.awaited.Store(c.awaitsProgram())
	if now < c.lookDue {
		return
	}
	c.lookDue = now + consumerInterval
	c.reportProcessed(now)
	before := c.stuckTopics
	c.stuckTopics = nil
	for _, s := range c.machine.StuckQueues(now) {
		if !slices.Contains(before, s.Topic) {
			c.log.Warn("the program does not process what it receives", "topic", s.Topic, "waiting", s.Waiting,
				"for", time.Duration(now-s.Since))
		}
		c.stuckTopics = append(c.stuckTopics, s.Topic)
	}
	for _, topic := range before {
		if !slices.Contains(c.stuckTopics, topic) {
			c.log.Info("the program processes what it receives again", "topic", topic)
		}
	}
}

// stuckConsumers returns the queues whose program makes no progress, within node.Do.
func (c *consumers) stuckConsumers(now protocol.Time) (list []StuckConsumer) {
	c.reportProcessed(now)
	for _, s := range c.machine.StuckQueues(now) {
		list = append(list, StuckConsumer{Topic: s.Topic, Since: c.node.Wall(s.Since), Waiting: s.Waiting})
	}
	return list
}

// FreshWithin reports whether this process certainly had, not longer than d ago, everything that
// the group had sent: it was a member of the latest view, in contact with a quorum, and its
// program has processed since whatever a member of that quorum had sent or received
// ([Processed] says what processed means). What a [State] holds is restored, and Messages has yielded
// the [*GapError], if there was a gap. So a cache that is filled by broadcasts is never
// more than d out of date if it answers only like this:
//
//	value := cache.get(key)
//	if !group.FreshWithin(time.Second) {
//		return errStale
//	}
//	return value
//
// Take the value first: a process may be stopped between the two calls. The time is that of this
// process's clock, on the way out and back, so clocks of other hosts do not matter. It does not
// run while the host is suspended.
//
// FreshWithin is cheap. The first call, and every one that comes 10 s after the last, returns
// false, and makes this process ask the other members about four times within d. The messages of
// a member that no member of the quorum has heard from are not covered: their sender is cut off,
// or has not had an answer for them yet ([Group.WaitStable]). It is false in a static group, with
// Config.AllowMinority, and while most members run release 0.1.0.
func (g *Group) FreshWithin(d time.Duration) bool {
	s := g.session()
	if s.consumers.current == nil || g.config.AllowMinority || s.Err() != nil {
		return false
	}
	return s.consumers.current.Within(protocol.Time(d))
}

// missesState reports whether the program has yet to get the state, or a GapError. It is
// called within node.Do.
func (c *consumers) missesState() bool {
	if c.receiver.progress.Misses() {
		return true
	}
	for _, t := range c.receiver.topics {
		if t.progress.Misses() {
			return true
		}
	}
	return false
}

// makeCurrent makes the rounds by which this member knows whether it is current.
func (c *consumers) makeCurrent(asking *sync.WaitGroup) {
	if c.machine.Static() {
		return
	}
	c.current = rounds.New(rounds.Config{
		Self: c.self.Rank, Direct: c.direct.channel, Stream: c.stream, View: c.view.Load, Misses: c.missesState,
		Arbiter:    c.config.Arbiter != nil,
		FlushBatch: func() { c.machine.FlushBatch() }, Go: asking.Go, Life: c.life,
		Do:  func(f func(protocol.Time)) error { return c.node.Do(f) },
		Now: func() protocol.Time { return c.node.Now() },
	})
}
