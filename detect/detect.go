package detect

import (
	"errors"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Detector reports which peers may have died. Its methods are safe for concurrent
// use.
type Detector interface {
	// Start begins to report. It is called once. The detector calls report from
	// its own goroutines, one call at a time for each peer, and never after Close
	// has returned. The function must not call Close, nor wait for a goroutine
	// that does.
	Start(report func(Report)) error

	// Watch sets the peers to watch: the present view without this member. It is
	// called at every view change, the first time before any message is sent. It
	// is cheap and does not block. The detector forgets a peer that is no longer
	// in the view, and the state of an earlier incarnation, without a report. A
	// report in progress may still be about the previous view.
	Watch(peers Peers)

	// Close stops the detector, within a second if report returns by then.
	Close() error
}

// MemberAware is a Detector that must know the member for which it works.
type MemberAware interface {
	// SetMember is called once, before Start.
	SetMember(Member)
}

// Member is the member for which a detector works.
type Member struct {
	Rank        protocol.Rank
	Incarnation uint64
	// Address is the "host:port" at which the other members reach this one.
	Address string
	// Group is the name of the group. A detector ignores other groups.
	Group string
	// Key is 32 bytes that follow from the group's secret, by which detectors can protect
	// what they say. It is nil if the group has none.
	Key []byte
}

// KeyRotator is a Detector whose key can change while it runs.
type KeyRotator interface {
	// SetKeys replaces [Member].Key, after Start: the detector uses the first key, and accepts
	// all.
	SetKeys(keys [][]byte)
}

// Renewer is a Detector that can be created again with the same configuration, for the
// membership of a process that rejoins its group.
type Renewer interface {
	Renew() Detector
}

// Peer is a process to watch.
type Peer struct {
	Rank protocol.Rank
	// Incarnation is that of the process that has the rank in the view. If zero,
	// it is not known yet, because the process may not even be started; the first
	// process met under this rank counts.
	Incarnation uint64
	// Address is the "host:port" at which the peer accepts connections. If empty,
	// it is not known, and [Connections] cannot probe the peer.
	Address string
	// Pause is how long [Connections] waits before it probes the peer after a lost
	// connection. It is set for members that are far from the peer: usually a
	// closer member reports the peer, and a view without it comes first.
	Pause time.Duration
}

// Report is a suspicion or its withdrawal. It is about one process and does not
// apply to a later incarnation. A suspicion may be reported more than once.
type Report struct {
	Rank protocol.Rank
	// Incarnation is that of the process. It is 0 if the process was never met. If
	// it is met afterwards, the withdrawal of that suspicion carries the
	// incarnation known by then.
	Incarnation uint64
	// Alive withdraws an earlier suspicion.
	Alive bool
	// Cause is why the peer is suspected, usually a [*Suspicion]. It is nil if
	// Alive is set.
	Cause error
}

// The errors of Start.
var (
	// ErrClosed is returned by Start after Close.
	ErrClosed = errors.New("detect: closed")
	// ErrStarted is returned by the second call of Start.
	ErrStarted = errors.New("detect: started twice")
)
