package detect

import (
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/protocol"
)

// Whatever happens in whichever order, those who hear the reports hold in the
// end what the tracker holds, and are told nothing twice.
func TestTrackerReportsItsState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			tr := NewTracker()
			defer tr.Close()
			l := listener{rt: rt, heard: map[protocol.Rank]uint64{}}
			if err := tr.Start(l.report); err != nil {
				rt.Fatal(err)
			}
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				trackerStep(rt, tr, &l)
			}
			l.take()
			if held := held(tr); !maps.Equal(held, l.heard) {
				rt.Errorf("held suspect: %v, but heard: %v", held, l.heard)
			}
		})
	})
}

// listener takes reports. Those of a new view come after it has dropped what it held in the one before.
type listener struct {
	rt      *rapid.T
	mu      sync.Mutex
	reports []Report
	heard   map[protocol.Rank]uint64 // the incarnations suspected
}

func (l *listener) report(r Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports = append(l.reports, r)
}

// take takes all reports.
func (l *listener) take() {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.reports {
		if _, before := l.heard[r.Rank]; before == !r.Alive {
			l.rt.Errorf("reported again: %+v", r)
		}
		delete(l.heard, r.Rank)
		if !r.Alive {
			l.heard[r.Rank] = r.Incarnation
		}
	}
	l.reports = nil
}

func trackerStep(rt *rapid.T, tr *Tracker, l *listener) {
	rank := protocol.Rank(rapid.IntRange(0, 3).Draw(rt, "rank"))
	incarnation := rapid.Uint64Range(0, 3).Draw(rt, "incarnation")
	switch p := (Peer{Rank: rank, Incarnation: incarnation}); rapid.SampledFrom([]string{
		"suspect", "suspect", "trust", "met", "watch", "settle",
	}).Draw(rt, "step") {
	case "suspect":
		tr.Suspect(p, ErrSilent, nil)
	case "trust":
		tr.Trust(p)
	case "met":
		tr.Met(rank, incarnation+1)
	case "settle":
		l.take()
	case "watch":
		var view []Peer
		for r := range protocol.Rank(4) {
			if rapid.Bool().Draw(rt, "member") {
				view = append(view, Peer{Rank: r, Incarnation: rapid.Uint64Range(0, 3).Draw(rt, "of the member")})
			}
		}
		l.take()
		tr.Watch(PeerList(view))
		forget(tr, l.heard)
	}
}

// forget drops what a listener has to drop when the view changes.
func forget(tr *Tracker, heard map[protocol.Rank]uint64) {
	for rank, incarnation := range heard {
		if p, ok := tr.Watched(rank); !ok || p.Incarnation != incarnation {
			delete(heard, rank)
		}
	}
}

// held returns the incarnations that are suspected.
func held(tr *Tracker) map[protocol.Rank]uint64 {
	held := map[protocol.Rank]uint64{}
	for rank := range protocol.Rank(4) {
		if p, ok := tr.Watched(rank); ok && tr.Suspicion(p) != nil {
			held[rank] = p.Incarnation
		}
	}
	return held
}

func TestLaterProcessProvesEarlierGone(t *testing.T) {
	f := NewFeed()
	f.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 5}, {Rank: 2}}))
	j := started(t, f)
	f.tracker.Met(1, 4) // A former process still talks.
	f.tracker.Met(2, 7) // Unknown so far: this is it.
	f.tracker.Met(1, 6)
	cause := j.want(t, suspected(1, 5))
	if !errors.Is(cause, ErrReplaced) {
		t.Errorf("cause is %v, want %v", cause, ErrReplaced)
	}
	f.tracker.Met(2, 8)
	j.want(t, suspected(1, 5), suspected(2, 7))

	// The view takes the new one in: nothing is held against it.
	f.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 6}, {Rank: 2}}))
	f.Suspect(1, nil)
	j.want(t, suspected(1, 5), suspected(2, 7), suspected(1, 6))
}

// What comes in before there is anybody to tell is told later, whether or not the
// view changes meanwhile.
func TestNewsBeforeStartIsTold(t *testing.T) {
	f := NewFeed()
	view := []Peer{{Rank: 1, Incarnation: 5}, {Rank: 2, Incarnation: 5}}
	f.Watch(PeerList(view))
	f.Suspect(2, nil)
	f.Watch(PeerList(view))
	started(t, f).want(t, suspected(2, 5))
}

// News of one process is not news of another.
func TestTrackerTellsProcessesApart(t *testing.T) {
	tr := NewTracker()
	before, now := Peer{Rank: 1, Incarnation: 5}, Peer{Rank: 1, Incarnation: 6}
	tr.Watch(PeerList([]Peer{now}))
	tr.Suspect(before, ErrGone, nil)
	if s := tr.Suspicion(now); s != nil {
		t.Errorf("news of its predecessor: %v", s)
	}
	tr.Suspect(now, ErrGone, nil)
	tr.Trust(before)
	if s := tr.Suspicion(now); s == nil {
		t.Error("trusted again though it is gone")
	}
}

func TestStartAndCloseOnce(t *testing.T) {
	for name, d := range map[string]Detector{
		"connections": NewConnections(ConnectionsConfig{}),
		"feed":        NewFeed(),
		"all":         All(NewFeed()),
	} {
		ignore := func(Report) {}
		if err := d.Start(ignore); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Start(ignore); !errors.Is(err, ErrStarted) {
			t.Errorf("%s: started twice: %v", name, err)
		}
		closed(t, d)
		closed(t, d)
		d.Watch(PeerList([]Peer{{Rank: 3}}))
		if err := d.Start(ignore); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: started after Close: %v", name, err)
		}
	}
	closed(t, NewConnections(ConnectionsConfig{}))
	closed(t, None{})
}
