package detect

import (
	"errors"
	"testing"
	"time"
)

// A peer that is found at another address is not suspected any more for what was found out
// about the former one.
func TestTrackerTrustsPeerThatMoved(t *testing.T) {
	reports := make(chan Report, 2)
	tracker := NewTracker()
	if err := tracker.Start(func(r Report) { reports <- r }); err != nil {
		t.Fatal(err)
	}
	defer tracker.Close()
	next := func() Report {
		select {
		case r := <-reports:
			return r
		case <-time.After(5 * time.Second):
			t.Fatal("no report")
			return Report{}
		}
	}
	p := Peer{Rank: 1, Incarnation: 3, Address: "old:1"}
	tracker.Watch(PeerList([]Peer{p}))
	tracker.Suspect(p, errors.New("refused"), nil)
	if r := next(); r.Alive {
		t.Fatalf("%+v", r)
	}
	p.Address = "new:1"
	tracker.Watch(PeerList([]Peer{p}))
	if r := next(); !r.Alive || r.Rank != 1 {
		t.Errorf("%+v", r)
	}
}
