package collective

import (
	"context"
	"encoding/binary"
	"fmt"
)

// maxInner is how many worlds may be made of one.
const maxInner = 1 << 16

// Shrink makes a world of those who have survived in this one, agreed on by all of
// them: their ranks are 0 to n-1, in the old order ([Place.First] has the old
// ones), each has a task of its own again, and calls are numbered anew. It is
// MPI_Comm_shrink of ULFM, and is made in a revoked world too. Who dies while it is
// made may be a member of the new world, and has failed there then.
//
// Like [Agree] it has to be called by all survivors, whatever calls they came from.
// The new world ends with the one that it was made of.
func Shrink(ctx context.Context, w World) (Place, error) {
	e := w.place().at
	e.mu.Lock()
	inner := len(e.inner)
	e.mu.Unlock()
	if inner >= maxInner {
		return Place{}, fmt.Errorf("collective: Shrink: %d worlds were made of this one already", maxInner)
	}
	s := signature{kind: shrinking, root: noRoot, length: noLength, strength: report}
	var made *Engine
	err := w.place().do(ctx, s, func(t *task) (err error) {
		_, made, err = t.settle(0)
		return err
	})
	if err != nil {
		return Place{}, err
	}
	return made.Place(), nil
}

// First returns which rank of the world that pleach.NewWorld has made somebody
// was, by its rank in this one. They differ only in worlds made by [Shrink].
func (p Place) First(rank int) int { return p.at.firstOf(rank) }

// found makes the world of those who were in the view that a pact names. It is
// made when the terms are stored, because then they will not change: so everybody
// has it before anybody can return from Shrink and send something in it.
func (e *Engine) found(p *pact) {
	if p.op.call.signature.kind != shrinking || p.world != nil || e.err != nil {
		return
	}
	w := &Engine{family: e.family, name: nameOf(e.name, p.number)}
	own := 0
	for i, r := range e.liveIn(p.terms.view) {
		w.ranks = append(w.ranks, e.firstOf(r))
		if r == e.config.Rank {
			own = i
		}
	}
	c := e.config
	c.Rank, c.Size, c.View = own, len(w.ranks), p.terms.view
	prefix := binary.BigEndian.AppendUint64(nil, uint64(within)<<(8*(nameSize-1))|w.name)
	c.Link = &innerLink{e.family, prefix, w.ranks}
	w.start(c)
	for _, r := range e.liveIn(p.terms.view) {
		own, _ := w.rankOf(e.firstOf(r))
		w.of(own).lost = e.of(r).lost
	}
	// Who has died since goes as it went here, view by view, because who gets
	// whose tasks depends on the order.
	for _, view := range e.changesSince(p.terms.view) {
		w.Install(view, w.ranksOf(e, e.liveIn(view)))
	}
	if w.view != e.view {
		w.Install(e.view, w.ranksOf(e, e.members()))
	}
	p.world = w
	e.inner = append(e.inner, w)
	e.family.add(w)
}
