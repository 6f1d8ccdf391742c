package pleach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// forceInterval is how often ForceView asks for the new view, and forceTimeout bounds the
// question whether a process of the old one is there.
const (
	forceInterval = 50 * time.Millisecond
	forceTimeout  = 2 * time.Second
)

// ForceView lets the surviving members of a group that has lost its quorum go on without
// the others, which leave the view. Members are the IDs of those that go on; if there
// are none, all that the member at the address reaches. It returns the new view.
//
// ForceView gives up the guarantee that there is one group. The caller must know that the
// members that do not go on are dead, and not only cut off: otherwise they may
// continue as a second group of the same name. It is a last resort for an operator, after
// the loss of more members than a quorum can do without, and it is refused while the
// group has its quorum. Of the config, Group, TLS
// and Secret apply.
func ForceView(ctx context.Context, c Config, address string, members ...string) (View, error) {
	err := c.check(modeInspect)
	var v View
	if err == nil {
		v, err = forceView(ctx, c.client(nil), address, members)
	}
	if err != nil {
		return View{}, fmt.Errorf("pleach: ForceView at %s: %w", address, err)
	}
	return v, nil
}

func forceView(ctx context.Context, c tcp.Config, address string, members []string) (View, error) {
	for first := true; ; first = false {
		v, err := viewToForce(ctx, c, address)
		switch {
		case err != nil:
			return View{}, err
		case v.Err == nil && first:
			return View{}, fmt.Errorf("%w: the group has its quorum in view %d, nothing needs to be forced", ErrRefused, v.Number)
		case v.Err == nil:
			return v, nil
		}
		// A new view may still name members that are gone, if it was under way before.
		if err := forceMembers(ctx, c, &v, members); err != nil {
			return View{}, err
		}
		if err := awaitView(ctx, c, address, v.Number); err != nil {
			return View{}, err
		}
	}
}

// viewToForce returns the view of the process at an address. A process that was started
// again has no messages yet, but the view that it votes in.
func viewToForce(ctx context.Context, c tcp.Config, address string) (View, error) {
	for {
		_, err := requestOnce(ctx, c, address, control.View{})
		switch {
		case errors.As(err, new(*control.Restarted)):
			return seatToForce(ctx, c, address)
		case err == nil:
			i, err := inspect(ctx, c, address)
			if err != nil {
				return View{}, err
			}
			return i.View, nil
		case permanent(err) || ctx.Err() != nil:
			return View{}, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(forceInterval):
		}
	}
}

// seatToForce returns the view of a process that was started again. Which others of the
// view are there is not known before all were asked.
func seatToForce(ctx context.Context, c tcp.Config, address string) (View, error) {
	i, err := askIntroduction(ctx, c, address, &control.Question{})
	if err == nil && i.View == nil {
		err = errNotAMember
	}
	if err != nil {
		return View{}, err
	}
	v := *viewOf(i.View)
	lost := &QuorumError{View: v.Number, Members: v.Size(), Needed: i.View.Needed()}
	for _, m := range v.Members() {
		timed, cancel := context.WithTimeout(ctx, forceTimeout)
		if _, err := askIntroduction(timed, c, m.Address, &control.Question{}); err != nil {
			lost.Unreachable = append(lost.Unreachable, m.Rank)
		}
		cancel()
	}
	lost.Reachable = lost.Members - len(lost.Unreachable)
	v.Err = lost
	return v, nil
}

// askIntroduction asks the process at an address to introduce itself.
func askIntroduction(ctx context.Context, c tcp.Config, address string, q *control.Question) (*control.Introduction, error) {
	b, err := requestOnce(ctx, c, address, control.Introduce{Question: *q})
	if err != nil {
		return nil, err
	}
	return control.DecodeIntroduction(b)
}

// forceMembers asks each member that goes on to do so without the others.
func forceMembers(ctx context.Context, c tcp.Config, v *View, members []string) error {
	var lost *QuorumError
	_ = errors.As(v.Err, &lost)
	var some []Member
	for _, m := range v.Members() {
		if slices.Contains(members, m.ID) || len(members) == 0 && !slices.Contains(lost.Unreachable, m.Rank) {
			some = append(some, m)
		}
	}
	if len(members) > 0 && len(some) != len(members) {
		return fmt.Errorf("not all of %q are in view %d", members, v.Number)
	}
	force := control.Force{View: v.Number}
	for _, m := range some {
		force.Ranks = append(force.Ranks, protocol.Rank(m.Rank))
	}
	for _, m := range some {
		if _, err := requestOnce(ctx, c, m.Address, force); err != nil {
			return fmt.Errorf("%s: %w", m.ID, err)
		}
	}
	return nil
}

// awaitView waits until the member at an address has a later view than the given one.
func awaitView(ctx context.Context, c tcp.Config, address string, number uint64) error {
	for {
		i, err := inspect(ctx, c, address)
		if err != nil || i.View.Number > number {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: no view after view %d yet", ctx.Err(), number)
		case <-time.After(forceInterval):
		}
	}
}

// force lets some members go on without a quorum.
func (g *session) force(number uint64, ranks []protocol.Rank) error {
	err := errNotAMember
	_ = g.node.Do(func(now protocol.Time) {
		if v := g.machine.View(); v.Number > number {
			err = nil // another member was asked first, and it is done
			return
		}
		if err = g.inputs.ForceView(now, ranks); err == nil {
			g.log.Warn("view forced by an operator", "view", number, "with", len(ranks))
		}
	})
	return err
}
