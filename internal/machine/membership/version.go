package membership

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// All members of a view speak its protocol version. A view raises it, because members may
// send what is new only when all others can read it, and a view begins at the same place
// of every stream for all. The version never falls. An operator asks for the change: a
// member that has crashed in the middle of an upgrade is in no view, and still has to come
// back.

// VersionError means that a process does not speak the protocol version of a view.
type VersionError struct {
	Version uint16 // of the view, or of the next one
	Member  Member
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("membership: %q speaks protocol versions up to %d, and is to speak %d", e.Member.Identity,
		e.Member.Version, e.Version)
}

// Unwrap returns [ErrView].
func (e *VersionError) Unwrap() error { return ErrView }

// raise is the version that the next view is to have, on behalf of an operator.
type raise struct {
	wanted uint16 // by this member
	// version is wanted by any member, at the coordinator. The member repeats its request;
	// when that ends, the coordinator forgets it.
	version uint16
	until   protocol.Time
}

// RaiseVersion asks for a view with a higher protocol version. It is refused with a
// [VersionError] if a member does not speak that. The request ends with a view that has the
// version, or has a member that does not speak it.
func (m *Machine) RaiseVersion(now protocol.Time, version uint16) error {
	m.now = now
	if err := m.view.checkVersion(version); err != nil {
		return err
	}
	m.raise.wanted = version
	m.reporter.changed()
	return nil
}

// raises reports whether this member waits for a view with a higher version.
func (m *Machine) raises() bool { return m.raise.wanted > m.view.Version }

// handleRaise takes or renews the request of a member.
func (m *Machine) handleRaise(now protocol.Time, version uint16) {
	if version <= m.view.Version || m.view.checkVersion(version) != nil {
		return
	}
	if m.raise.version < version {
		m.raise.version = version
		m.window.note(now)
	}
	m.raise.until = now + m.lease()
}

// pruneRaise forgets the requests that the view has fulfilled, or makes impossible.
func (m *Machine) pruneRaise() {
	for _, version := range []*uint16{&m.raise.wanted, &m.raise.version} {
		if *version <= m.view.Version || m.view.checkVersion(*version) != nil {
			*version = 0
		}
	}
}

// nextVersion returns the version of the next view, in which those members stay. Candidates
// count as members: a process that was welcome when it asked is not sent away.
func (m *Machine) nextVersion(stay Members) uint16 {
	version := min(m.raise.version, stay.lowestVersion())
	for i := range m.candidates {
		version = min(version, m.candidates[i].Version)
	}
	return max(version, m.view.Version)
}

// checkVersion returns an error if a member of the view does not speak a version.
func (v *View) checkVersion(version uint16) error {
	for _, m := range v.Members.All() {
		if m.Version < version {
			return &VersionError{version, *m}
		}
	}
	return nil
}

// checkVersion returns an error if the version falls, or a member does not speak it.
func (v *value) checkVersion(before, next *View) error {
	switch {
	case v.version < before.Version:
		return fmt.Errorf("%w: view %d has protocol version %d, after %d", ErrView, v.number, v.version, before.Version)
	case v.version > before.Version:
		return next.checkVersion(v.version)
	}
	for i := range v.added {
		if v.added[i].Version < v.version {
			return &VersionError{v.version, v.added[i]}
		}
	}
	return nil
}

// lowestVersion returns the highest version that all members speak, or 0 if there are none.
func (l Members) lowestVersion() (lowest uint16) {
	for i, m := range l.All() {
		if i == 0 || m.Version < lowest {
			lowest = m.Version
		}
	}
	return lowest
}
