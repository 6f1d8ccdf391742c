package detect

import (
	"sync"

	"github.com/pleach-go/pleach/protocol"
)

// tracker is what detectors have in common: it keeps what is held of each peer,
// and reports what has changed. It does so from a goroutine of its own, so that
// whoever brings news never waits for whoever hears it. What changes back before
// it was told is not told.
type tracker struct {
	mu      sync.Mutex
	peers   map[protocol.Rank]*peerState
	changed []protocol.Rank // Each at most once, see standing.listed.
	started bool
	closed  bool
	wake    chan struct{} // Holds one: something has changed.
	done    chan struct{}
	running sync.WaitGroup
}

// peerState is what is held of one peer.
type peerState struct {
	peer     Peer
	cause    *Suspicion // nil: not suspected.
	reported bool       // What was reported last: suspected or not.
	queued   bool       // It is among those changed.
}

func newTracker() *tracker {
	return &tracker{
		peers: map[protocol.Rank]*peerState{},
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
	}
}

func (h *tracker) start(report func(Report)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return ErrClosed
	case h.started:
		return ErrStarted
	}
	h.started = true
	h.running.Go(func() { h.run(report) })
	return nil
}

// close returns when nothing is being reported any more.
func (h *tracker) close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
	h.mu.Unlock()
	h.running.Wait()
}

func (h *tracker) run(report func(Report)) {
	for {
		for r, ok := h.next(); ok; r, ok = h.next() {
			report(r)
		}
		select {
		case <-h.wake:
		case <-h.done:
			return
		}
	}
}

// next returns what has to be told next.
func (h *tracker) next() (Report, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.changed) > 0 && !h.closed {
		s := h.peers[h.changed[0]]
		h.changed = h.changed[1:]
		if s == nil {
			continue // No longer watched.
		}
		s.queued = false
		if suspected := s.cause != nil; suspected != s.reported {
			s.reported = suspected
			return s.report(), true
		}
	}
	return Report{}, false
}

func (s *peerState) report() Report {
	r := Report{Rank: s.peer.Rank, Incarnation: s.peer.Incarnation, Alive: s.cause == nil}
	if s.cause != nil {
		r.Cause = s.cause
	}
	return r
}

// watch sets who is watched. What is held of a process that stays is kept.
func (h *tracker) watch(peers []Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.peers
	h.peers = make(map[protocol.Rank]*peerState, len(peers))
	h.changed = nil
	for _, p := range peers {
		s := old[p.Rank]
		if s == nil || p.Incarnation != 0 && p.Incarnation != s.peer.Incarnation {
			s = &peerState{peer: p}
		}
		// The incarnation met first stays where the view does not know one.
		p.Incarnation = s.peer.Incarnation
		s.peer, s.queued = p, false
		h.peers[p.Rank] = s
		h.enqueue(s)
	}
}

// watched returns the peer of a rank, with its incarnation as far as it is known.
func (h *tracker) watched(rank protocol.Rank) (Peer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.peers[rank]; s != nil {
		return s.peer, true
	}
	return Peer{}, false
}

// watches reports whether that very process is watched.
func (h *tracker) watches(p Peer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(p) != nil
}

// suspicion returns why a peer is suspected, or nil.
func (h *tracker) suspicion(p Peer) *Suspicion {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil {
		return s.cause
	}
	return nil
}

// suspect says that a peer may have died. The first cause is kept.
func (h *tracker) suspect(p Peer, why, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil {
		h.suspectState(s, why, err)
	}
}

// trust withdraws a suspicion.
func (h *tracker) trust(p Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil {
		s.cause = nil
		h.enqueue(s)
	}
}

// answered withdraws the suspicion that a peer is silent. That somebody answers
// at its address does not bring back a process that is gone.
func (h *tracker) answered(p Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil && s.cause != nil && s.cause.Why == ErrSilent {
		s.cause = nil
		h.enqueue(s)
	}
}

// met says that a process has shown itself under a rank. A later one than the
// one watched proves that one gone: nobody but its successor has a higher
// incarnation. It reports whether the process is the one watched.
func (h *tracker) met(rank protocol.Rank, incarnation uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.peers[rank]
	if s == nil {
		return false
	}
	if s.peer.Incarnation == 0 {
		s.peer.Incarnation = incarnation
	}
	switch {
	case incarnation > s.peer.Incarnation:
		h.suspectState(s, ErrReplaced, nil)
	case incarnation == s.peer.Incarnation:
		s.cause = nil
		h.enqueue(s)
		return true
	}
	return false
}

// find returns the standing of a process, or nil if it is not watched any more:
// news of it may have been under way while the view changed.
func (h *tracker) find(p Peer) *peerState {
	s := h.peers[p.Rank]
	if s == nil || s.peer.Incarnation != p.Incarnation {
		return nil
	}
	return s
}

func (h *tracker) suspectState(s *peerState, why, err error) {
	if s.cause == nil {
		s.cause = &Suspicion{Rank: s.peer.Rank, Incarnation: s.peer.Incarnation, Why: why, Err: err}
		h.enqueue(s)
	}
}

// enqueue sees to it that a standing is told, if it differs from what was.
func (h *tracker) enqueue(s *peerState) {
	if s.queued || s.reported == (s.cause != nil) {
		return
	}
	s.queued = true
	h.changed = append(h.changed, s.peer.Rank)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}
