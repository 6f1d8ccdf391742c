package detect

import (
	"errors"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Detector reports which peers may have died. Its methods may be called from
// several goroutines.
type Detector interface {
	// Start begins to report. It is called once. The function is called from
	// the detector's goroutines, about one peer after the other, and never
	// after Close has returned. It must neither call Close nor wait for somebody
	// who does.
	Start(report func(Report)) error

	// Watch sets who is watched: the present view, without this member. It is
	// called at every view change, and the first time before anything is sent.
	// It is cheap and never waits. Whoever is no longer in it is forgotten
	// without a report, and so is what was held of an earlier incarnation. A
	// report that is under way meanwhile may still be about the former view.
	Watch(peers []Peer)

	// Close ends the detector, within a second if the function given to Start
	// returns by then.
	Close() error
}

// Peer is somebody to watch.
type Peer struct {
	Rank protocol.Rank
	// Incarnation is the process's that has the rank in the view. 0: it is not
	// known yet, because the process may not even have been started; then the
	// first to be met under this rank counts.
	Incarnation uint64
	// Address is the "host:port" at which the peer takes connections. "": it
	// is not known, and [Connections] cannot look there.
	Address string
	// SWIM is the "host:port" of the peer's [SWIM], see [SWIM.Address]. "": it
	// is found through other peers and seeds.
	SWIM string
	// Pause is how long [Connections] waits before it looks at the peer because
	// a connection has broken. It is for those who have others closer to the
	// peer, who look at once: mostly it is out of the view by then, and need not
	// be looked at by everybody who knew it.
	Pause time.Duration
}

// Report is a suspicion, or its withdrawal. It is about one process: a later
// incarnation is not suspected by it. A suspicion may be reported more than once.
type Report struct {
	Rank protocol.Rank
	// Incarnation is that of the process. 0: it was never met. Once it has been,
	// a suspicion of 0 is withdrawn under the number it is known by then.
	Incarnation uint64
	// Alive withdraws an earlier suspicion.
	Alive bool
	// Cause is why the peer is suspected, usually a [*Suspicion]. nil if Alive.
	Cause error
}

// What a detector that cannot be started says.
var (
	// ErrClosed: it has been closed.
	ErrClosed = errors.New("detect: closed")
	// ErrStarted: it has been started before.
	ErrStarted = errors.New("detect: started twice")
)
