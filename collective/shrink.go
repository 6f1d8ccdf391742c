package collective

import (
	"context"
	"encoding/binary"
	"fmt"
)

// maxInner is how many worlds may be made of one.
const maxNested = 1 << 16

// Shrink makes a world of those who have survived in this one, agreed on by all of
// them: their ranks are 0 to n-1, in the old order ([Place.First] has the old
// ones), each has a task of its own again, and calls are numbered anew. It is
// MPI_Comm_shrink of ULFM, and is made in a revoked world too. Who dies while it is
// made may be a member of the new world, and has failed there then.
//
// Like [Agree] it has to be called by all survivors, whatever calls they came from.
// The new world ends with the one that it was made of.
func Shrink(ctx context.Context, w Communicator) (Comm, error) {
	e := w.comm().engine
	e.mu.Lock()
	inner := len(e.nested)
	e.mu.Unlock()
	if inner >= maxNested {
		return Comm{}, fmt.Errorf("collective: Shrink: %d worlds were made of this one already", maxNested)
	}
	s := signature{kind: shrinking, root: noRoot, length: noLength, failureMode: report}
	var made *Engine
	err := w.comm().do(ctx, s, func(t *task) (err error) {
		_, made, err = t.agree(0)
		return err
	})
	if err != nil {
		return Comm{}, err
	}
	return made.Comm(), nil
}

// First returns which rank of the world that pleach.NewWorld has made somebody
// was, by its rank in this one. They differ only in worlds made by [Shrink].
func (p Comm) WorldRank(rank int) int { return p.engine.worldRank(rank) }

// found makes the world of those who were in the view that a pact names. It is
// made when the terms are stored, because then they will not change: so everybody
// has it before anybody can return from Shrink and send something in it.
func (e *Engine) newSubComm(p *agreement) {
	if p.call.local.signature.kind != shrinking || p.subComm != nil || e.err != nil {
		return
	}
	w := &Engine{registry: e.registry, contextID: deriveContextID(e.contextID, p.number)}
	own := 0
	for i, r := range e.liveIn(p.proposal.view) {
		w.worldRanks = append(w.worldRanks, e.worldRank(r))
		if r == e.config.Rank {
			own = i
		}
	}
	c := e.config
	c.Rank, c.Size, c.View = own, len(w.worldRanks), p.proposal.view
	prefix := binary.BigEndian.AppendUint64(nil, uint64(typeNested)<<(8*(contextIDSize-1))|w.contextID)
	c.Link = &nestedLink{e.registry, prefix, w.worldRanks}
	w.start(c)
	for _, r := range e.liveIn(p.proposal.view) {
		own, _ := w.rankOfWorld(e.worldRank(r))
		w.peer(own).down = e.peer(r).down
	}
	// Who has died since goes as it went here, view by view, because who gets
	// whose tasks depends on the order.
	for _, view := range e.changesSince(p.proposal.view) {
		w.Install(view, w.ranksOf(e, e.liveIn(view)))
	}
	if w.view != e.view {
		w.Install(e.view, w.ranksOf(e, e.members()))
	}
	p.subComm = w
	e.nested = append(e.nested, w)
	e.registry.add(w)
}
