package detect

import (
	"errors"
	"maps"
	"sync"

	"github.com/pleach-go/pleach/protocol"
)

// All combines several detectors: a peer is suspected while any of them suspects
// it. All passes on every suspicion with its cause, and the withdrawal when no
// detector suspects the peer any more.
func All(detectors ...Detector) Detector {
	return &all{detectors: detectors, peers: map[protocol.Rank]*suspicions{}}
}

type all struct {
	detectors []Detector
	watching  sync.Mutex // Held during Watch: all detectors see the views in one order.
	reporting sync.Mutex // Held during a report: reports must not overtake each other.

	mu    sync.Mutex // Guards the rest. Never held during a call that blocks.
	peers map[protocol.Rank]*suspicions
	round uint64 // Counts calls of Watch.
}

// suspicions are those of one peer.
type suspicions struct {
	incarnation uint64         // As in the view; 0 if the view does not know it.
	by          map[int]uint64 // The incarnation that each detector suspects. nil: none did yet.
	round       uint64         // Of the last Watch that had the peer.
}

// SetMember implements [MemberAware].
func (a *all) SetMember(m Member) {
	for _, d := range a.detectors {
		if aware, ok := d.(MemberAware); ok {
			aware.SetMember(m)
		}
	}
}

// Start starts all detectors, or none.
func (a *all) Start(report func(Report)) error {
	for i, d := range a.detectors {
		if err := d.Start(func(r Report) { a.pass(i, r, report) }); err != nil {
			return errors.Join(err, closeAll(a.detectors[:i]))
		}
	}
	return nil
}

// Watch passes the view on. Suspicions of processes that left the view are dropped.
func (a *all) Watch(peers []Peer) {
	a.watching.Lock()
	defer a.watching.Unlock()
	// First here: a report about the previous view that is still in progress must
	// meet the new one.
	a.keep(peers)
	for _, d := range a.detectors {
		d.Watch(peers)
	}
}

func (a *all) keep(peers []Peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.round++
	for _, p := range peers {
		v := a.peers[p.Rank]
		if v == nil {
			v = &suspicions{}
			a.peers[p.Rank] = v
		}
		v.incarnation, v.round = p.Incarnation, a.round
		maps.DeleteFunc(v.by, func(_ int, incarnation uint64) bool { return !v.about(incarnation) })
	}
	if len(a.peers) > len(peers) {
		maps.DeleteFunc(a.peers, func(_ protocol.Rank, v *suspicions) bool { return v.round != a.round })
	}
}

// about reports whether an incarnation is the one in the view.
func (v *suspicions) about(incarnation uint64) bool {
	return v.incarnation == 0 || v.incarnation == incarnation
}

// Close closes all detectors.
func (a *all) Close() error { return closeAll(a.detectors) }

// pass takes the report of detector i, and passes it on if it changes the result.
func (a *all) pass(i int, r Report, report func(Report)) {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	if a.record(i, r) {
		report(r)
	}
}

// record stores a report, and returns whether it changes the result.
func (a *all) record(i int, r Report) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.peers[r.Rank]
	if v == nil || !v.about(r.Incarnation) {
		return false
	}
	if !r.Alive {
		if v.by == nil {
			v.by = map[int]uint64{}
		}
		v.by[i] = r.Incarnation
		return true
	}
	delete(v.by, i)
	return len(v.by) == 0
}

// closeAll closes detectors concurrently, so that several take no longer than one.
func closeAll(detectors []Detector) error {
	errs := make([]error, len(detectors))
	var closing sync.WaitGroup
	for i, d := range detectors {
		closing.Go(func() { errs[i] = d.Close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}
