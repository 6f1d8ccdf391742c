package pleach

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/membership"
)

// Why a member's part is over.
var (
	// ErrClosed: the group has been closed by this process.
	ErrClosed = errors.New("pleach: group closed")
	// ErrLeft: this process has left.
	ErrLeft = errors.New("pleach: left the group")
	// ErrEvicted: the others have gone on without this process, because they could
	// not reach it. A [*membership.EvictedError] beside it says since which view.
	// [Group.Rejoin] makes it a member again.
	ErrEvicted = errors.New("pleach: the others have gone on without this process")
	// ErrNoQuorum: too few members are reachable to go on. It may pass.
	ErrNoQuorum = errors.New("pleach: too few members are reachable")
	// ErrFixed: the group's members are fixed (Config.Fixed).
	ErrFixed = errors.New("pleach: the members of this group are fixed")
)

// Err returns why this process is no longer a member, and nil while it is.
func (g *Group) Err() error { return g.over.cause() }

// stand takes in how this member stands to its group, within node.Do.
func (g *Group) stand() {
	state, err := g.parts.views.State()
	switch state {
	case membership.Active:
		g.standing.Store(nil)
	case membership.NoQuorum:
		err = fmt.Errorf("%w: %w", ErrNoQuorum, err)
		g.standing.Store(&err)
	case membership.Evicted:
		g.over.end(fmt.Errorf("%w: %w", ErrEvicted, err))
	case membership.Left:
		g.over.end(ErrLeft)
	}
}

// unable is why this member may not broadcast now.
func (g *Group) unable() error {
	if err := g.Err(); err != nil {
		return err
	}
	if err := g.standing.Load(); err != nil {
		return *err
	}
	return nil
}

// failed names this member in an error.
func (g *Group) failed(what string, err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("pleach: %s of rank %d in view %d: %w", what, g.Rank(), g.view.Load().Number, err)
}
