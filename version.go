package pleach

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/wire"
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
