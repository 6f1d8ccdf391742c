package pleach

import (
	"context"
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// VersionError means that a process, or a call, does not go with the protocol version of
// the group. It wraps [tcp.ErrVersion], and [ErrRefused].
type VersionError struct {
	// What is the process or the call.
	What string
	// Group is the version of the group. What needs one from Min to Max.
	Group, Min, Max int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("pleach: %s needs protocol version %d to %d, and the group has %d", e.What, e.Min, e.Max, e.Group)
}

// Unwrap returns [tcp.ErrVersion] and [ErrRefused].
func (e *VersionError) Unwrap() []error { return []error{tcp.ErrVersion, ErrRefused} }

// notSpoken says that this process does not speak the version of a group.
func notSpoken(version uint16) *VersionError {
	return &VersionError{"this process", int(version), wire.MinVersion, int(wire.Newest())}
}

// speaks returns an error if this process does not speak the version of a group.
func speaks(version uint16) error {
	if !wire.Speaks(version) {
		return notSpoken(version)
	}
	return nil
}

// needs returns an error if the group's version is too low for a call: some member might
// not understand what the call sends.
func (g *session) needs(version uint16, call string) error {
	if v := g.view.Load().Version; v < version {
		return &VersionError{call, int(v), int(version), wire.Version}
	}
	return nil
}

// versions returns the version of the group, and the highest that any member speaks.
func (g *session) versions() (version, newest int) {
	v := g.view.Load()
	for _, m := range v.Members.All() {
		newest = max(newest, int(m.Version))
	}
	return int(v.Version), newest
}

// RaiseError means that the protocol version of a group cannot be raised yet.
type RaiseError struct {
	// Version is that of the group. Members speak no higher one, and the others do.
	Version int
	Members []Member
}

func (e *RaiseError) Error() string {
	names := make([]string, len(e.Members))
	for i, m := range e.Members {
		names[i] = fmt.Sprintf("%q (rank %d)", m.ID, m.Rank)
	}
	return fmt.Sprintf("pleach: the group stays at protocol version %d: some members speak no higher one: %s", e.Version, strings.Join(names, ", "))
}

// RaiseVersion gives a group the highest protocol version that all members speak, and
// returns the view that has it. An operator calls it when the last process of a group is
// upgraded. Address is that of any member. Processes that do not speak the new version
// cannot join any more, and the version never falls. If only some members speak a higher
// version than the group has, RaiseVersion returns a [*RaiseError]. Of the config, Group,
// TLS and Secret apply.
//
// A group begins with the highest version that its first members have in common. So
// without an upgrade there is nothing to raise, and RaiseVersion returns the present view.
func RaiseVersion(ctx context.Context, c Config, address string) (View, error) {
	err := c.check(modeInspect)
	var v View
	if err == nil {
		v, err = raiseVersion(ctx, c.client(nil), address)
	}
	if err != nil {
		return View{}, fmt.Errorf("pleach: RaiseVersion at %s: %w", address, err)
	}
	return v, nil
}

func raiseVersion(ctx context.Context, c tcp.Config, address string) (View, error) {
	i, err := inspect(ctx, c, address)
	if err != nil {
		return View{}, err
	}
	version, err := highestVersion(&i.View)
	if err != nil {
		return View{}, err
	}
	if version > i.View.Version {
		_, err = requestOnce(ctx, c, address, control.Raise{Version: uint16(version)})
	}
	for err == nil && i.View.Version < version {
		if err = awaitView(ctx, c, address, i.View.Number); err == nil {
			i, err = inspect(ctx, c, address)
		}
		if err == nil {
			_, err = highestVersion(&i.View) // a process that prevents it may have joined meanwhile
		}
	}
	if err != nil {
		return View{}, err
	}
	return i.View, nil
}

// highestVersion returns the highest version that all members speak. It returns a
// [*RaiseError] if it is that of the view already, and only some members speak higher ones.
func highestVersion(v *View) (version int, err error) {
	stay := &RaiseError{Version: v.Version}
	for i, m := range v.Members() {
		if i == 0 || m.Version < version {
			version = m.Version
		}
		if m.Version <= v.Version {
			stay.Members = append(stay.Members, m)
		}
	}
	if n := len(stay.Members); n > 0 && n < v.Size() {
		return version, stay
	}
	return version, nil
}

// raise raises the version.
func (g *session) raise(version uint16) error {
	err := errNotAMember
	_ = g.node.Do(func(now protocol.Time) { err = g.inputs.RaiseVersion(now, version) })
	return err
}
