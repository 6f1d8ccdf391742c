package wire

// A group has one protocol version, which is part of its view. A build speaks two
// neighboring ones, so that the processes of a group can be upgraded one after the other.
// Frames describe themselves by kinds and flags, and a decoder knows all of them. So the
// version of the group only says what may be sent, and encoders do not ask for it.

import (
	"errors"
	"fmt"
	"strconv"
)

const (
	// Version is the highest protocol version of this package, and MinVersion the lowest.
	Version    = 6
	MinVersion = 5

	// EvictVersion is the first version in which reports and decisions tell that an operator
	// has evicted a member, or that its certificate is revoked.
	EvictVersion = 6

	// HeaderVersion is the first version in which messages and requests may have a header.
	HeaderVersion = 6
)

// newest, if not empty, replaces Version. Tests of rolling upgrades build the version
// before by it: -ldflags '-X github.com/pleach-go/pleach/internal/base/wire.newest=5'.
var newest string

var newestVersion = func() uint16 {
	if n, err := strconv.ParseUint(newest, 10, 16); err == nil {
		return uint16(n)
	}
	return Version
}()

// Newest returns the highest version that this build speaks: Version, except in a build
// for tests of rolling upgrades.
func Newest() uint16 { return newestVersion }

// Speaks reports whether this build speaks a version.
func Speaks(version uint16) bool { return nearest(version) == version }

// nearest returns the version that this build speaks and that is closest to another one.
func nearest(version uint16) uint16 { return min(max(version, MinVersion), Newest()) }

// ErrVersion is wrapped by every [VersionError].
var ErrVersion = errors.New("another protocol version")

// VersionError means that the other side speaks another version. It wraps
// [ErrVersion].
type VersionError struct{ Theirs uint16 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("wire: the other side speaks protocol version %d, this one %d to %d", e.Theirs, MinVersion,
		Newest())
}

// Unwrap returns [ErrVersion].
func (e *VersionError) Unwrap() error { return ErrVersion }
