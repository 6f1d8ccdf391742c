package detect

import (
	"sync"

	"github.com/pleach-go/pleach/protocol"
)

// herald is what detectors have in common: it keeps what is held of each peer,
// and reports what has changed. It does so from a goroutine of its own, so that
// whoever brings news never waits for whoever hears it. What changes back before
// it was told is not told.
type herald struct {
	mu        sync.Mutex
	standings map[protocol.Rank]*standing
	changed   []protocol.Rank // Each at most once, see standing.listed.
	started   bool
	closed    bool
	wake      chan struct{} // Holds one: something has changed.
	done      chan struct{}
	running   sync.WaitGroup
}

// standing is what is held of one peer.
type standing struct {
	peer   Peer
	cause  *Suspicion // nil: not suspected.
	told   bool       // What was reported last: suspected or not.
	listed bool       // It is among those changed.
}

func newHerald() *herald {
	return &herald{
		standings: map[protocol.Rank]*standing{},
		wake:      make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
}

func (h *herald) start(report func(Report)) error {
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
func (h *herald) close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
	h.mu.Unlock()
	h.running.Wait()
}

func (h *herald) run(report func(Report)) {
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
func (h *herald) next() (Report, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.changed) > 0 && !h.closed {
		s := h.standings[h.changed[0]]
		h.changed = h.changed[1:]
		if s == nil {
			continue // No longer watched.
		}
		s.listed = false
		if suspected := s.cause != nil; suspected != s.told {
			s.told = suspected
			return s.report(), true
		}
	}
	return Report{}, false
}

func (s *standing) report() Report {
	r := Report{Rank: s.peer.Rank, Incarnation: s.peer.Incarnation, Alive: s.cause == nil}
	if s.cause != nil {
		r.Cause = s.cause
	}
	return r
}

// watch sets who is watched. What is held of a process that stays is kept.
func (h *herald) watch(peers []Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.standings
	h.standings = make(map[protocol.Rank]*standing, len(peers))
	h.changed = nil
	for _, p := range peers {
		s := old[p.Rank]
		if s == nil || p.Incarnation != 0 && p.Incarnation != s.peer.Incarnation {
			s = &standing{peer: p}
		}
		// The incarnation met first stays where the view does not know one.
		p.Incarnation = s.peer.Incarnation
		s.peer, s.listed = p, false
		h.standings[p.Rank] = s
		h.list(s)
	}
}

// watched returns the peer of a rank, with its incarnation as far as it is known.
func (h *herald) watched(rank protocol.Rank) (Peer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.standings[rank]; s != nil {
		return s.peer, true
	}
	return Peer{}, false
}

// watches reports whether that very process is watched.
func (h *herald) watches(p Peer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.find(p) != nil
}

// suspicion returns why a peer is suspected, or nil.
func (h *herald) suspicion(p Peer) *Suspicion {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil {
		return s.cause
	}
	return nil
}

// suspect says that a peer may have died. The first cause is kept.
func (h *herald) suspect(p Peer, why, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil {
		h.suspectStanding(s, why, err)
	}
}

// trust withdraws a suspicion.
func (h *herald) trust(p Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil {
		s.cause = nil
		h.list(s)
	}
}

// answered withdraws the suspicion that a peer is silent. That somebody answers
// at its address does not bring back a process that is gone.
func (h *herald) answered(p Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.find(p); s != nil && s.cause != nil && s.cause.Why == ErrSilent {
		s.cause = nil
		h.list(s)
	}
}

// met says that a process has shown itself under a rank. A later one than the
// one watched proves that one gone: nobody but its successor has a higher
// incarnation. It reports whether the process is the one watched.
func (h *herald) met(rank protocol.Rank, incarnation uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.standings[rank]
	if s == nil {
		return false
	}
	if s.peer.Incarnation == 0 {
		s.peer.Incarnation = incarnation
	}
	switch {
	case incarnation > s.peer.Incarnation:
		h.suspectStanding(s, ErrReplaced, nil)
	case incarnation == s.peer.Incarnation:
		s.cause = nil
		h.list(s)
		return true
	}
	return false
}

// find returns the standing of a process, or nil if it is not watched any more:
// news of it may have been under way while the view changed.
func (h *herald) find(p Peer) *standing {
	s := h.standings[p.Rank]
	if s == nil || s.peer.Incarnation != p.Incarnation {
		return nil
	}
	return s
}

func (h *herald) suspectStanding(s *standing, why, err error) {
	if s.cause == nil {
		s.cause = &Suspicion{Rank: s.peer.Rank, Incarnation: s.peer.Incarnation, Why: why, Err: err}
		h.list(s)
	}
}

// list sees to it that a standing is told, if it differs from what was.
func (h *herald) list(s *standing) {
	if s.listed || s.told == (s.cause != nil) {
		return
	}
	s.listed = true
	h.changed = append(h.changed, s.peer.Rank)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}
