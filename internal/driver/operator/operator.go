// Package operator implements the requests of an operator outside the group: show its view,
// force a view without a quorum, raise the protocol version, and remove a member.
package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

const (
	interval      = 50 * time.Millisecond // between two questions for a new view
	evictInterval = time.Second           // between two requests for the same eviction
	voterTimeout  = 2 * time.Second       // for the question whether a process of the old view is there
)

// Client asks the processes of a group.
type Client struct{ *client.Client }

// ErrHasQuorum is returned by [Client.Force] if nothing needs to be forced.
var ErrHasQuorum = errors.New("nothing needs to be forced")

// StayError is returned by [Client.Raise] if some members do not speak a higher version than
// the group has, and others do.
type StayError struct {
	Version uint16
	Members []*membership.Member
}

func (e *StayError) Error() string {
	return fmt.Sprintf("%d members speak no higher version than %d", len(e.Members), e.Version)
}

// View returns the view of a member.
func (c *Client) View(ctx context.Context, address string) (control.ViewReply, error) {
	b, err := c.Retry(ctx, address, control.View{})
	if err != nil {
		return control.ViewReply{}, err
	}
	return control.DecodeView(b)
}

// Force lets the members with some IDs decide the next view without the others. Without IDs, the
// members that the process at the address reaches decide. It returns the new view.
func (c *Client) Force(ctx context.Context, address string, ids []string) (control.ViewReply, error) {
	for first := true; ; first = false {
		v, err := c.viewToForce(ctx, address)
		switch {
		case err == nil && v.Lost == nil && first:
			return v, fmt.Errorf("the group has its quorum in view %d, %w", v.View.Number, ErrHasQuorum)
		case err != nil, v.Lost == nil:
			return v, err
		}
		// A new view may still name members that are gone, if it was under way before.
		if err := c.forceMembers(ctx, &v, ids); err != nil {
			return v, err
		}
		if _, err := c.await(ctx, address, v.View.Number); err != nil {
			return v, err
		}
	}
}

// viewToForce returns the view of the process at an address. A process that was started
// again has no messages yet, but the view that it votes in.
func (c *Client) viewToForce(ctx context.Context, address string) (control.ViewReply, error) {
	for {
		b, err := c.Ask(ctx, address, control.View{})
		switch {
		case errors.As(err, new(*control.Restarted)):
			return c.voterToForce(ctx, address)
		case err == nil:
			return control.DecodeView(b)
		case client.Permanent(err) || ctx.Err() != nil:
			return control.ViewReply{}, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// voterToForce returns the view of a process that was started again. Which others of the
// view are there is not known before all were asked.
func (c *Client) voterToForce(ctx context.Context, address string) (v control.ViewReply, err error) {
	i, err := c.Introduction(ctx, address, &control.Question{})
	if err == nil && i.View == nil {
		err = errors.New("the process has no place in a view")
	}
	if err != nil {
		return v, err
	}
	v.View, v.Lost = *i.View, &control.Lost{Needed: i.View.Needed()}
	for _, m := range v.View.Members.All() {
		timed, cancel := context.WithTimeout(ctx, voterTimeout)
		if _, err := c.Introduction(timed, m.Address, &control.Question{}); err != nil {
			v.Lost.Unreachable = append(v.Lost.Unreachable, m.Rank)
		} else if !m.Observer {
			v.Lost.Reachable++
		}
		cancel()
	}
	return v, nil
}

// forceMembers asks each remaining member to continue without the others.
func (c *Client) forceMembers(ctx context.Context, v *control.ViewReply, ids []string) error {
	force := control.Force{View: v.View.Number}
	var some []*membership.Member
	for _, m := range v.View.Members.All() {
		if slices.Contains(ids, m.Identity) || len(ids) == 0 && !slices.Contains(v.Lost.Unreachable, m.Rank) {
			some, force.Ranks = append(some, m), append(force.Ranks, m.Rank)
		}
	}
	if len(ids) > 0 && len(some) != len(ids) {
		return fmt.Errorf("not all of %q are in view %d", ids, v.View.Number)
	}
	for _, m := range some {
		if _, err := c.Ask(ctx, m.Address, force); err != nil {
			return fmt.Errorf("%s: %w", m.Identity, err)
		}
	}
	return nil
}

// await waits until the member at an address has a later view than the given one.
func (c *Client) await(ctx context.Context, address string, number uint64) (control.ViewReply, error) {
	for {
		v, err := c.View(ctx, address)
		if err != nil || v.View.Number > number {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("%w: no view after view %d yet", ctx.Err(), number)
		case <-time.After(interval):
		}
	}
}

// GoneError is returned by [Client.Evict] if no member has the ID.
type GoneError struct {
	ID   string
	View uint64
}

func (e *GoneError) Error() string { return fmt.Sprintf("no member %q in view %d", e.ID, e.View) }

// VersionError is returned by [Client.Evict] if the version of the group is too low.
type VersionError struct{ Group, Needed uint16 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the group has protocol version %d, and %d is needed", e.Group, e.Needed)
}

// Evict has the member with an ID removed, and returns the first known view without it. The
// member at the address is asked, or another one if that is the one to remove.
func (c *Client) Evict(ctx context.Context, address, id string) (control.ViewReply, error) {
	v, err := c.View(ctx, address)
	if err != nil {
		return v, err
	}
	m := v.View.Named(id)
	switch {
	case m == nil:
		return v, &GoneError{id, v.View.Number}
	case v.View.Version < membership.EvictVersion:
		return v, &VersionError{v.View.Version, membership.EvictVersion}
	}
	for _, other := range v.View.Members.All() {
		if address == m.Address && other.Rank != m.Rank {
			address = other.Address
		}
	}
	for err == nil && v.View.Holds(m.Rank, m.Incarnation) {
		v, err = c.evictOnce(ctx, address, &v, m)
	}
	return v, err
}

// evictOnce asks for a view without a member, and waits for the next view for a limited time. The
// request must be repeated if the member is still in that view, or if there is none: the group
// withdraws an eviction that would leave it without a quorum, and then refuses the next request.
func (c *Client) evictOnce(ctx context.Context, address string, v *control.ViewReply,
	m *membership.Member,
) (control.ViewReply, error) {
	if _, err := c.Retry(ctx, address, control.Evict{Rank: m.Rank, Incarnation: m.Incarnation}); err != nil {
		return *v, err
	}
	timed, cancel := context.WithTimeout(ctx, evictInterval)
	defer cancel()
	next, err := c.await(timed, address, v.View.Number)
	if timed.Err() != nil && ctx.Err() == nil {
		return *v, nil
	}
	return next, err
}

// Raise gives the group the highest version that all members speak, and returns the view
// that has it.
func (c *Client) Raise(ctx context.Context, address string) (control.ViewReply, error) {
	v, err := c.View(ctx, address)
	if err != nil {
		return v, err
	}
	version, err := highestVersion(&v.View)
	if err == nil && version > v.View.Version {
		_, err = c.Ask(ctx, address, control.Raise{Version: version})
	}
	for err == nil && v.View.Version < version {
		v, err = c.await(ctx, address, v.View.Number)
		if err == nil {
			_, err = highestVersion(&v.View) // a process that prevents it may have joined meanwhile
		}
	}
	return v, err
}

// highestVersion returns the highest version that all members speak. It returns a
// [*StayError] if it is that of the view already, and only some members speak higher ones.
func highestVersion(v *membership.View) (version uint16, err error) {
	stay := &StayError{Version: v.Version}
	for i, m := range v.Members.All() {
		if i == 0 || m.Version < version {
			version = m.Version
		}
		if m.Version <= v.Version {
			stay.Members = append(stay.Members, m)
		}
	}
	if n := len(stay.Members); n > 0 && n < v.Members.Len() {
		return version, stay
	}
	return version, nil
}
