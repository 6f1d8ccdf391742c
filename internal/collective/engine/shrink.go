package engine

import (
	"context"
	"fmt"
	"time"
)

// maxNested limits the communicators derived from one. Beyond it, Shrink fails.
const maxNested = 1 << 16

// Shrink derives a communicator of the survivors, agreed on by all of them. Those that do
// not come within a time, if it is not 0, are removed.
func (c Comm) Shrink(ctx context.Context, s Signature, within time.Duration) (Comm, error) {
	e := c.engine
	e.mu.Lock()
	nested := len(e.comms.nested)
	e.mu.Unlock()
	if nested >= maxNested {
		return Comm{}, fmt.Errorf("collective: Shrink: %d communicators were derived from this one already", maxNested)
	}
	var sub *Engine
	err := c.Do(ctx, s, func(t *Task) (err error) {
		_, sub, err = t.agree(0, within)
		return err
	})
	if err != nil {
		return Comm{}, err
	}
	return sub.Comm(), nil
}

// deriveSubComm derives the communicator of the ranks in the proposal's view. Each
// process derives it when it accepts the proposal, which does not change from then on: so
// every process has it before any can return from Shrink and send a message in it.
func (e *Engine) deriveSubComm(a *agreement) {
	if a.call.local.signature.Kind != Shrink || a.subComm != nil || e.err != nil {
		return
	}
	view := a.proposal.view
	a.subComm = e.nest(deriveContextID(e.comms.contextID, a.number), e.peers.liveIn(view), view)
}

// nest adds the communicator of some ranks, in ascending order, that begins with a view.
func (e *Engine) nest(contextID uint64, ranks []int, view uint64) *Engine {
	n := &Engine{comms: comms{registry: e.comms.registry, contextID: contextID}}
	c := e.config
	c.Rank = 0
	for i, r := range ranks {
		n.comms.worldRanks = append(n.comms.worldRanks, e.worldRank(r))
		if r == e.config.Rank {
			c.Rank = i
		}
	}
	c.Size, c.View, c.Placement = len(ranks), view, e.config.Placement.Of(ranks)
	c.Link = newNestedLink(e.comms.registry.link, contextID, n.comms.worldRanks)
	n.start(c)
	n.peers.newcomers = n.ranksOf(e, e.peers.newcomers)
	for i, r := range ranks {
		before, s := e.peers.of(r), n.peers.of(i)
		s.down = before.down
		if before.upSince > 0 {
			s.upSince = n.now()
		}
	}
	// Failures are installed view by view, as they were here, because the owners of
	// tasks depend on the order.
	for _, later := range e.peers.changesFrom(view) {
		n.Install(later, n.ranksOf(e, e.peers.liveIn(later)))
	}
	if n.peers.view != e.peers.view {
		n.Install(e.peers.view, n.ranksOf(e, e.peers.members()))
	}
	e.comms.nested = append(e.comms.nested, n)
	e.comms.registry.add(n)
	return n
}
