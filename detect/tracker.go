package detect

import (
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/protocol"
)

// Tracker is what detectors have in common: it keeps the state of each peer and
// reports changes from a goroutine of its own, so that a detector's sources never
// wait for the function that takes the reports. The goroutine lives only while there are
// changes. A change that is reverted before
// it was reported is not reported.
//
// A detector passes on Start, Watch and Close, and calls Suspect, Trust and Met
// when it learns something. Make one with [NewTracker].
type Tracker struct {
	begin     time.Time               // time 0 of the machine
	afterStep func(now protocol.Time) // called under mu after each input, if not nil
	reporting sync.WaitGroup          // the goroutine that reports

	mu      sync.Mutex // Guards the rest.
	machine *detection.Machine
	report  func(Report) // nil: not started.
	running bool         // The goroutine is there.
	closed  bool
}

var _ Detector = (*Tracker)(nil)

// NewTracker makes a tracker that watches no peer yet.
func NewTracker() *Tracker { return newTracker(detection.Config{}) }

func newTracker(c detection.Config) *Tracker {
	c.Gone, c.Silent, c.Replaced = ErrGone, ErrSilent, ErrReplaced
	return &Tracker{begin: time.Now(), machine: detection.New(c)}
}

// Start implements [Detector]. Changes that came before it are reported then.
func (t *Tracker) Start(report func(Report)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case t.report != nil:
		return ErrStarted
	}
	t.report = report
	t.run()
	return nil
}

// Close implements [Detector]. It returns when no report is in progress.
func (t *Tracker) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.reporting.Wait()
	return nil
}

// step passes an input to the machine. After Close it does nothing.
func (t *Tracker) step(input func(now protocol.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	now := protocol.Time(time.Since(t.begin))
	input(now)
	if t.afterStep != nil {
		t.afterStep(now)
	}
	t.run()
}

// run reports the changes, unless there are none, or it does so already.
func (t *Tracker) run() {
	if t.running || t.report == nil || !t.machine.Pending() {
		return
	}
	t.running = true
	t.reporting.Go(func() {
		for r, ok := t.next(); ok; r, ok = t.next() {
			t.report(r)
		}
	})
}

// next returns the next report, or ends the goroutine if there is none.
func (t *Tracker) next() (Report, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.machine.Report()
	if !ok || t.closed {
		t.running = false
		return Report{}, false
	}
	r := Report{Rank: o.Rank, Incarnation: o.Incarnation, Alive: o.Why == nil}
	if s := Suspicion(o); !r.Alive {
		r.Cause = &s
	}
	return r, true
}

// Watch implements [Detector]. It keeps the state of a process that stays in the view.
func (t *Tracker) Watch(peers Peers) {
	t.step(func(now protocol.Time) { t.machine.Watch(now, watched{peers}) })
}

// Watched returns the peer of a rank, with its incarnation if that is known.
func (t *Tracker) Watched(rank protocol.Rank) (Peer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.machine.Watched(rank)
	return Peer{p.Rank, p.Incarnation, p.Address, time.Duration(p.Pause)}, ok
}

// Suspicion returns why a peer is suspected, or nil if it is not.
func (t *Tracker) Suspicion(p Peer) *Suspicion {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := Suspicion(t.machine.Opinion(p.Rank, p.Incarnation)); s.Why != nil {
		return &s
	}
	return nil
}

// Suspect records that a peer may have died. A peer that is suspected already
// keeps its first cause. See [Suspicion] for why and err.
func (t *Tracker) Suspect(p Peer, why, err error) {
	t.step(func(protocol.Time) { t.machine.Suspect(p.Rank, p.Incarnation, why, err) })
}

// Trust withdraws a suspicion.
func (t *Tracker) Trust(p Peer) {
	t.step(func(protocol.Time) { t.machine.Trust(p.Rank, p.Incarnation) })
}

// Met records that a process has shown itself under a rank. A process with a
// higher incarnation than the watched one proves that the watched one is gone:
// only its successor has one. Met reports whether the process is the watched one.
func (t *Tracker) Met(rank protocol.Rank, incarnation uint64) bool {
	watched := false
	t.step(func(protocol.Time) { watched = t.machine.Met(rank, incarnation) })
	return watched
}
