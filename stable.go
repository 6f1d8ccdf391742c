package pleach

import (
	"context"
	"fmt"

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
	Err        error
}

func (e *UnstableError) Error() string {
	return fmt.Sprintf("pleach: not known to be stable in view %d, no acknowledgment from ranks %v and below: %v", e.View, e.Unanswered, e.Err)
}

// Unwrap returns the cause.
func (e *UnstableError) Unwrap() error { return e.Err }

// LostError is returned by [Group.WaitStable] when members have lost a part of what
// this process broadcast, because they fell further behind than the others keep
// (Config.Limits.KeepBytes). [Message.Lost] told their programs how many messages.
type LostError struct {
	View uint64
	// Ranks are the members known to have lost something, in ascending order.
	Ranks []int
}

func (e *LostError) Error() string {
	return fmt.Sprintf("pleach: in view %d, ranks %v have lost a part of what was broadcast", e.View, e.Ranks)
}

// WaitStable waits until every member of the view has received all that this
// process has broadcast before the call and since the member joined: until those messages
// are stable. A member
// that dies meanwhile is waited for until a view without it is installed. Members
// acknowledge on request only, so broadcasts cost no acknowledgments.
//
// A member that has lost a part of what this process broadcast since it joined is
// never in a receipt: while it is in the view, the error is a [*LostError]. If ctx
// ends first, the error is an [*UnstableError].
func (g *Group) WaitStable(ctx context.Context) (Receipt, error) { return g.session().waitStable(ctx) }

func (g *session) waitStable(ctx context.Context) (Receipt, error) {
	var receipt Receipt
	var upTo uint64
	if err := g.flush(ctx); err != nil {
		if ctx.Err() != nil {
			err = &UnstableError{g.View().Number, g.unanswered(), err}
		}
		return receipt, err
	}
	var sentIn uint64
	if err := g.node.Do(func(now protocol.Time) { upTo, sentIn = g.inputs.Poll(now), g.sentIn }); err != nil {
		return receipt, ErrClosed
	}
	for {
		changed := g.changed.Wait()
		var incomplete []int
		_ = g.node.Do(func(protocol.Time) {
			if g.stream.Stable() >= upTo {
				receipt = g.receipt(sentIn)
				return
			}
			incomplete = ranksOf(g.stream.Incomplete())
		})
		switch {
		case receipt.View != 0:
			return receipt, nil
		case incomplete != nil:
			return receipt, &LostError{g.View().Number, incomplete}
		}
		select {
		case <-changed:
		case <-g.life.Done():
			return receipt, g.Err()
		case <-ctx.Done():
			return receipt, &UnstableError{g.View().Number, g.unanswered(), ctx.Err()}
		}
	}
}

// unanswered returns the ranks that have not acknowledged.
func (g *session) unanswered() (ranks []int) {
	_ = g.node.Do(func(protocol.Time) {
		ranks = ranksOf(g.stream.Unanswered())
	})
	return ranks
}

func ranksOf(from []protocol.Rank) (ranks []int) {
	for _, r := range from {
		ranks = append(ranks, int(r))
	}
	return ranks
}

// receipt names the members of the view: those that had joined when the last broadcast was
// written, and the others.
func (g *session) receipt(sentIn uint64) Receipt {
	v := g.View()
	r := Receipt{View: v.Number}
	for _, m := range v.Members() {
		if m.Incarnation <= sentIn || sentIn == 0 || g.config.Static {
			r.Members = append(r.Members, m)
		} else {
			r.Joined = append(r.Joined, m)
		}
	}
	return r
}
