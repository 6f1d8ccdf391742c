package detect

import (
	"errors"
	"sync"

	"github.com/pleach-go/pleach/internal/machine/detection"
)

// All combines several detectors: a peer is suspected while any of them suspects
// it. All passes on every suspicion with its cause, and the withdrawal when no
// detector suspects the peer any more.
func All(detectors ...Detector) Detector {
	return &all{detectors: detectors, merged: detection.NewMerged(len(detectors))}
}

type all struct {
	detectors []Detector
	watching  sync.Mutex // Held during Watch: all detectors see the views in one order.
	reporting sync.Mutex // Held during a report: reports must not overtake each other.

	mu     sync.Mutex // Guards the rest. Never held during a call that blocks.
	merged *detection.Merged
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
	a.mu.Lock()
	a.merged.Watch(watched{peers})
	a.mu.Unlock()
	for _, d := range a.detectors {
		d.Watch(peers)
	}
}

// Close closes all detectors.
func (a *all) Close() error { return closeAll(a.detectors) }

// pass takes the report of detector i, and passes it on if it changes the result.
func (a *all) pass(i int, r Report, report func(Report)) {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	a.mu.Lock()
	changed := a.merged.Report(i, r.Rank, r.Incarnation, r.Alive)
	a.mu.Unlock()
	if changed {
		report(r)
	}
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
