package detect

import (
	"sync"

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
	mu      sync.Mutex
	peers   Peers
	states  map[protocol.Rank]*peerState // Of the peers that were met or suspected.
	changed []protocol.Rank              // Each at most once, see peerState.queued.
	take    func(Report)                 // nil: not started.
	closed  bool
	running bool // The goroutine is there.
	ended   sync.WaitGroup
}

var _ Detector = (*Tracker)(nil)

// peerState is the state of one peer.
type peerState struct {
	peer     Peer
	cause    *Suspicion // nil: not suspected.
	reported bool       // The last report was a suspicion.
	queued   bool       // The rank is in changed.
}

// NewTracker makes a tracker that watches no peer yet.
func NewTracker() *Tracker {
	return &Tracker{peers: peerList(nil), states: map[protocol.Rank]*peerState{}}
}

// Start implements [Detector]. Changes that came before it are reported then.
func (t *Tracker) Start(report func(Report)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case t.take != nil:
		return ErrStarted
	}
	t.take = report
	t.run()
	return nil
}

// Close implements [Detector]. It returns when no report is in progress.
func (t *Tracker) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.ended.Wait()
	return nil
}

// run reports the changes, unless there are none, or it does so already.
func (t *Tracker) run() {
	if t.running || t.take == nil || t.closed || len(t.changed) == 0 {
		return
	}
	t.running = true
	t.ended.Go(func() {
		for r, ok := t.next(); ok; r, ok = t.next() {
			t.take(r)
		}
	})
}

// next returns the next report, or ends the goroutine if there is none.
func (t *Tracker) next() (Report, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.changed) > 0 && !t.closed {
		s := t.states[t.changed[0]]
		t.changed = t.changed[1:]
		if s == nil {
			continue // No longer watched.
		}
		s.queued = false
		if suspected := s.cause != nil; suspected != s.reported {
			s.reported = suspected
			return s.report(), true
		}
	}
	t.running = false
	return Report{}, false
}

func (s *peerState) report() Report {
	r := Report{Rank: s.peer.Rank, Incarnation: s.peer.Incarnation, Alive: s.cause == nil}
	if s.cause != nil {
		r.Cause = s.cause
	}
	return r
}

// Watch implements [Detector]. It keeps the state of a process that stays in the view.
func (t *Tracker) Watch(peers Peers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peers = peers
	t.changed = nil
	for rank, s := range t.states {
		p, ok := t.peers.Find(rank)
		if !ok || !p.is(s.peer.Incarnation) {
			delete(t.states, rank)
			continue
		}
		// The incarnation met first stays where the view does not know one.
		p.Incarnation = s.peer.Incarnation
		if p.Address != s.peer.Address {
			s.cause = nil // What was found out about the former address says nothing.
		}
		s.peer, s.queued = p, false
		t.enqueue(s)
	}
}

// state returns the state of a rank's peer, or nil if it is not watched. It makes one if
// there is none.
func (t *Tracker) state(rank protocol.Rank) *peerState {
	s := t.states[rank]
	if s != nil {
		return s
	}
	p, ok := t.peers.Find(rank)
	if !ok {
		return nil
	}
	s = &peerState{peer: p}
	t.states[rank] = s
	return s
}

// Watched returns the peer of a rank, with its incarnation if that is known.
func (t *Tracker) Watched(rank protocol.Rank) (Peer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.states[rank]; s != nil {
		return s.peer, true
	}
	return t.peers.Find(rank)
}

// watches reports whether exactly this process is watched.
func (t *Tracker) watches(p Peer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(p) != nil
}

// Suspicion returns why a peer is suspected, or nil if it is not.
func (t *Tracker) Suspicion(p Peer) *Suspicion {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(p); s != nil {
		return s.cause
	}
	return nil
}

// Suspect records that a peer may have died. A peer that is suspected already
// keeps its first cause. See [Suspicion] for why and err.
func (t *Tracker) Suspect(p Peer, why, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(p); s != nil {
		t.suspectState(s, why, err)
	}
}

// Trust withdraws a suspicion.
func (t *Tracker) Trust(p Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(p); s != nil {
		s.cause = nil
		t.enqueue(s)
	}
}

// answered withdraws the suspicion that a peer is silent. An answer from its
// address does not bring back a process that is gone.
func (t *Tracker) answered(p Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(p); s != nil && s.cause != nil && s.cause.Why == ErrSilent {
		s.cause = nil
		t.enqueue(s)
	}
}

// Met records that a process has shown itself under a rank. A process with a
// higher incarnation than the watched one proves that the watched one is gone:
// only its successor has one. Met reports whether the process is the watched one.
func (t *Tracker) Met(rank protocol.Rank, incarnation uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state(rank)
	if s == nil {
		return false
	}
	if s.peer.Incarnation == 0 {
		s.peer.Incarnation = incarnation
	}
	switch {
	case incarnation > s.peer.Incarnation:
		t.suspectState(s, ErrReplaced, nil)
	case incarnation == s.peer.Incarnation:
		s.cause = nil
		t.enqueue(s)
		return true
	}
	return false
}

// find returns the state of a process, or nil if it is not watched any more: the
// view may have changed since the detector began to look at it.
func (t *Tracker) find(p Peer) *peerState {
	s := t.state(p.Rank)
	if s == nil || s.peer.Incarnation != p.Incarnation {
		return nil
	}
	return s
}

func (t *Tracker) suspectState(s *peerState, why, err error) {
	if s.cause == nil {
		s.cause = &Suspicion{Rank: s.peer.Rank, Incarnation: s.peer.Incarnation, Why: why, Err: err}
		t.enqueue(s)
	}
}

// enqueue makes run report a state that differs from the last report.
func (t *Tracker) enqueue(s *peerState) {
	if s.queued || s.reported == (s.cause != nil) {
		return
	}
	s.queued = true
	t.changed = append(t.changed, s.peer.Rank)
	t.run()
}
