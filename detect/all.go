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
	return &all{detectors: detectors, peers: peerList(nil), suspicions: map[protocol.Rank]map[int]uint64{}}
}

type all struct {
	detectors []Detector
	watching  sync.Mutex // Held during Watch: all detectors see the views in one order.
	reporting sync.Mutex // Held during a report: reports must not overtake each other.

	mu         sync.Mutex // Guards the rest. Never held during a call that blocks.
	peers      Peers
	suspicions map[protocol.Rank]map[int]uint64 // The incarnation that each detector suspects.
}

// SetMember implements [MemberAware].
func (a *all) SetMember(m Member) {
	for _, d := range a.detectors {
		if aware, ok := d.(MemberAware); ok {
			aware.SetMember(m)
		}
	}
}

// SetKeys implements [KeyRotator].
func (a *all) SetKeys(keys [][]byte) {
	for _, d := range a.detectors {
		if rotator, ok := d.(KeyRotator); ok {
			rotator.SetKeys(keys)
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
func (a *all) Watch(peers Peers) {
	a.watching.Lock()
	defer a.watching.Unlock()
	// First here: a report about the previous view that is still in progress must
	// meet the new one.
	a.keep(peers)
	for _, d := range a.detectors {
		d.Watch(peers)
	}
}

func (a *all) keep(peers Peers) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peers = peers
	for rank, by := range a.suspicions {
		p, ok := peers.Find(rank)
		maps.DeleteFunc(by, func(_ int, incarnation uint64) bool { return !ok || !p.is(incarnation) })
		if len(by) == 0 {
			delete(a.suspicions, rank)
		}
	}
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
	p, ok := a.peers.Find(r.Rank)
	if !ok || !p.is(r.Incarnation) {
		return false
	}
	by := a.suspicions[r.Rank]
	if !r.Alive {
		if by == nil {
			by = map[int]uint64{}
			a.suspicions[r.Rank] = by
		}
		by[i] = r.Incarnation
		return true
	}
	delete(by, i)
	if len(by) == 0 {
		delete(a.suspicions, r.Rank)
	}
	return len(by) == 0
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
