package pleach

import (
	"context"
	"iter"
	"slices"

	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/protocol"
)

// View is a numbered, agreed set of members: everybody who is in it has the same.
// Numbers rise by one. Ranks that nobody has are holes: they stay until somebody
// joins.
type View struct {
	Number uint64
	// Slots is the number of ranks, holes included.
	Slots   int
	Members []Member // in order of rank
}

// Member is somebody in a view.
type Member struct {
	Rank int
	// Identity is who it is, over all its starts; Incarnation is which start.
	Identity    string
	Incarnation uint64
	Address     string // host:port
	Domain      string // what it fails with, as a rack or a zone; may be empty
}

// Has reports whether a rank is in the view.
func (v View) Has(rank int) bool {
	for _, m := range v.Members {
		if m.Rank == rank {
			return true
		}
	}
	return false
}

func viewOf(v *membership.View) *View {
	view := &View{Number: v.Number, Slots: int(v.Slots), Members: make([]Member, len(v.Members))}
	for i, m := range v.Members {
		view.Members[i] = Member{int(m.Rank), m.Identity, m.Incarnation, m.Address, m.Domain}
	}
	return view
}

// View returns the present view. Its slices must not be changed. In a group whose
// members are fixed it is always the first.
func (g *Group) View() View { return *g.view.Load() }

// Views yields the present view, and then each new one. Who is slow to take them
// gets only the latest. It ends when ctx does, or with this process's membership:
// [Group.Err] says why.
func (g *Group) Views(ctx context.Context) iter.Seq[View] {
	return func(yield func(View) bool) {
		for last := uint64(0); ; {
			changed := g.changed.Wait()
			if v := g.View(); v.Number > last {
				last = v.Number
				if !yield(v) {
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-g.over.done:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// installed takes in a view, within node.Do.
func (g *Group) installed(v *membership.View) {
	if g.directory != nil {
		for _, m := range v.Members {
			if m.Rank != g.config.Stream.Rank {
				g.directory.SetPeer(m.Rank, m.Address)
			}
		}
	}
	g.watch(v)
	g.view.Store(viewOf(v))
	g.config.Logger.Info("view", "rank", g.Rank(), "number", v.Number, "members", len(v.Members))
	g.changed.Notify()
	g.greet(v)
}

// greet opens connections to the next member on the ring and, in a small group, to
// who coordinates changes and who would be next to, if those are others than before.
// Whoever dies is then missed at once, though nobody may ever send it anything; and
// a change need not wait for connections to be made.
func (g *Group) greet(v *membership.View) {
	i, ok := slices.BinarySearchFunc(v.Members, g.config.Stream.Rank, compareRank)
	if !ok {
		return
	}
	if next := v.Members[(i+1)%len(v.Members)]; next != g.greeted {
		g.greeted = next
		g.parts.views.Up(g.parts.now, next.Rank)
	}
	var leaders []membership.Member
	if len(v.Members) <= membership.FlatSize {
		leaders = v.Members[:min(2, len(v.Members))]
	}
	for _, m := range leaders {
		if m != g.greeted && !slices.Contains(g.parts.leaders, m) {
			g.parts.views.Up(g.parts.now, m.Rank) // nothing happens if it is this member
		}
	}
	g.parts.leaders = leaders
}

func compareRank(m membership.Member, r protocol.Rank) int { return int(m.Rank - r) }

// Leave ends this process's membership as it wishes: the others agree on a view
// without it, and go on. It returns when they have, or ctx ends; then Close.
func (g *Group) Leave(ctx context.Context) error {
	if g.parts.views == nil {
		return g.failed("leave", ErrFixed)
	}
	if err := g.flush(ctx); err != nil && g.Err() == nil {
		return g.failed("leave", err)
	}
	if err := g.node.Do(func(now protocol.Time) {
		g.parts.now, g.parts.changed = now, true
		g.parts.views.Leave(now)
	}); err != nil {
		return ErrClosed
	}
	select {
	case <-g.over.done:
		if err := g.Err(); err != ErrLeft {
			return g.failed("leave", err)
		}
		return nil
	case <-ctx.Done():
		return g.failed("leave", ctx.Err())
	}
}
