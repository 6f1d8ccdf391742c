package pleach

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Receipt proves that every member of a view has received what this process has
// broadcast.
type Receipt struct {
	// View is that view, and Members are the ranks of its members.
	View    uint64
	Members []int
}

// UnstableError says from whom no word has come that they have something.
type UnstableError struct {
	View uint64
	// Silent are ranks that have not answered for themselves and for those that
	// they pass messages on to.
	Silent []int
	Err    error
}

func (e *UnstableError) Error() string {
	return fmt.Sprintf("pleach: not known to be everywhere in view %d, no word from below ranks %v: %v", e.View, e.Silent, e.Err)
}

// Unwrap returns the cause.
func (e *UnstableError) Unwrap() error { return e.Err }

// LostError says that members have lost a part of what this process has broadcast:
// they fell further behind than the others keep (Config.Stream.KeepBytes). Their
// programs were told ([Message.Lost]).
type LostError struct {
	View uint64
	// Ranks are the members known to have lost something, in ascending order.
	Ranks []int
}

func (e *LostError) Error() string {
	return fmt.Sprintf("pleach: in view %d, ranks %v have lost a part of what was broadcast", e.View, e.Ranks)
}

// Stable waits until every member of the view has all that this process has
// broadcast before the call, and says who that is. Members that die meanwhile are
// not waited for once they are out of the view. The members are asked only now:
// broadcasts that nobody asks about cost no acknowledgment.
//
// A member that has lost a part of what this process has broadcast, at any time
// since it joined, is never in a receipt. While such a member is in the view, the
// error is a [*LostError]. If ctx ends first, it is an [*UnstableError].
func (g *Group) Stable(ctx context.Context) (Receipt, error) {
	var receipt Receipt
	var upTo uint64
	if err := g.flush(ctx); err != nil {
		if ctx.Err() != nil {
			err = &UnstableError{g.View().Number, g.silent(), err}
		}
		return receipt, err
	}
	if err := g.node.Do(func(now protocol.Time) { upTo = g.member.Poll(now) }); err != nil {
		return receipt, ErrClosed
	}
	for {
		changed := g.changed.wait()
		var lossy []int
		_ = g.node.Do(func(protocol.Time) {
			if g.member.Stable() >= upTo {
				receipt = g.receipt()
				return
			}
			lossy = ranksOf(g.member.Lossy())
		})
		switch {
		case receipt.Members != nil:
			return receipt, nil
		case lossy != nil:
			return receipt, &LostError{g.View().Number, lossy}
		}
		select {
		case <-changed:
		case <-g.over.done:
			return receipt, g.Err()
		case <-ctx.Done():
			return receipt, &UnstableError{g.View().Number, g.silent(), ctx.Err()}
		}
	}
}

// silent names those who have not answered.
func (g *Group) silent() (ranks []int) {
	_ = g.node.Do(func(protocol.Time) {
		ranks = ranksOf(g.member.Unanswered())
	})
	return ranks
}

func ranksOf(from []protocol.Rank) (ranks []int) {
	for _, r := range from {
		ranks = append(ranks, int(r))
	}
	return ranks
}

// receipt names everybody in the view.
func (g *Group) receipt() Receipt {
	v := g.View()
	r := Receipt{View: v.Number, Members: make([]int, len(v.Members))}
	for i, m := range v.Members {
		r.Members[i] = m.Rank
	}
	return r
}
