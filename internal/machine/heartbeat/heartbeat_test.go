package heartbeat

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

const (
	ms       protocol.Time = 1e6
	interval               = 300 * ms
	timeout                = 1500 * ms
)

// pair is a member and its neighbor, rank 1, in virtual time.
type pair struct {
	t       *testing.T
	now     protocol.Time
	m       *Machine
	beat    protocol.Time // when the neighbor sends its next heartbeat; Never: it is stopped
	beats   int           // of the member
	reports []string
}

func newPair(t *testing.T, started bool) *pair {
	p := &pair{t: t, now: 1, beat: 1}
	p.m = New(Config{Interval: interval, Timeout: timeout, Report: func(r protocol.Rank, silent bool) {
		p.reports = append(p.reports, fmt.Sprintf("%d %v %d", r, silent, p.now/ms))
	}})
	p.m.Watch(p.now, []Neighbor{{Rank: 1, Incarnation: 7, Started: started}})
	return p
}

// run runs both until a time. The member gets to run only so long after it is due.
func (p *pair) run(until, late protocol.Time) {
	for {
		due := min(p.m.Deadline()+late, p.beat+late)
		if due > until {
			p.now = until
			return
		}
		p.now = max(p.now, due)
		for p.beat <= p.now {
			p.m.Heard(p.now, 1)
			p.beat += interval
		}
		for _, ok := p.m.Next(p.now); ok; _, ok = p.m.Next(p.now) {
			p.beats++
		}
	}
}

func (p *pair) want(reports ...string) {
	p.t.Helper()
	if !slices.Equal(p.reports, reports) {
		p.t.Errorf("at %d ms: reports %q, want %q", p.now/ms, p.reports, reports)
	}
}

func TestStoppedNeighborIsSilentUntilItGoesOn(t *testing.T) {
	p := newPair(t, true)
	p.run(10_000*ms, 0)
	p.want()
	if p.beats != 33 {
		t.Errorf("%d heartbeats in 10 s", p.beats)
	}
	p.beat = protocol.Never / 2
	p.run(30_000*ms, 0)
	p.want("1 true 11400") // last heard at 9900 ms
	p.beat = p.now
	p.run(40_000*ms, 0)
	p.want("1 true 11400", "1 false 30000")
}

// Before its first sign of life, a neighbor that may not have started is not silent, and
// one that has gets twice the time.
func TestNeighborThatHasYetToConnect(t *testing.T) {
	for started, want := range map[bool][]string{false: nil, true: {"1 true 3000"}} {
		p := newPair(t, started)
		p.beat = protocol.Never / 2
		p.run(40_000*ms, 0)
		p.want(want...)
	}
}

// A member that was itself stopped begins its waits again.
func TestStoppedMemberDoubtsItself(t *testing.T) {
	p := newPair(t, true)
	p.run(10_000*ms, 0)
	p.now, p.beat = 30_000*ms, 30_400*ms // what the neighbor sent meanwhile arrives later
	p.run(40_000*ms, 0)
	p.want()
}

// A member whose timers are late all the time waits for longer.
func TestLateMemberWaitsForLonger(t *testing.T) {
	p := newPair(t, true)
	p.run(10_000*ms, 100*ms)
	p.beat = protocol.Never / 2
	p.run(10_000*ms+maxDoubt*timeout, 100*ms)
	p.want()
	p.run(12_000*ms+(maxDoubt+1)*timeout, 100*ms)
	if len(p.reports) != 1 {
		t.Errorf("reports %q, want one", p.reports)
	}
}

// A neighbor that has paused for long may do so again.
func TestNeighborThatPausesGetsLonger(t *testing.T) {
	p := newPair(t, true)
	p.run(10_000*ms, 0)
	p.beat = p.now + 1200*ms
	p.run(p.now+1200*ms, 0)
	p.beat = p.now + 2500*ms
	p.run(p.now+4000*ms, 0)
	p.want()
	p.run(p.now+60_000*ms, 0)
	stopped := p.now
	p.beat = protocol.Never / 2
	p.run(stopped+3000*ms, 0)
	if len(p.reports) != 1 {
		t.Errorf("reports %q: the pauses of a minute ago still count", p.reports)
	}
}

// A neighbor keeps its state from view to view, but not from one incarnation to the next.
func TestViewsKeepTheStateOfNeighbors(t *testing.T) {
	p := newPair(t, true)
	p.run(3000*ms, 0)
	p.beat = protocol.Never / 2
	p.run(4000*ms, 0)
	p.m.Watch(p.now, []Neighbor{{Rank: 2, Incarnation: 1}, {Rank: 1, Incarnation: 7, Started: true}})
	p.run(5000*ms, 0)
	p.want("1 true 4200")
	p.m.Watch(p.now, []Neighbor{{Rank: 1, Incarnation: 8, Started: true}})
	p.run(7500*ms, 0)
	p.want("1 true 4200")
	p.m.Watch(p.now, nil)
	if p.m.Deadline() != protocol.Never {
		t.Error("a member without neighbors has something to do")
	}
}

// A neighbor is quiet before it is silent, and at once no longer when it is heard.
func TestNeighborIsQuietBeforeItIsSilent(t *testing.T) {
	p := newPair(t, true)
	p.run(10_000*ms, 0)
	p.beat = protocol.Never / 2
	p.run(10_499*ms, 0)
	if p.m.Quiet() {
		t.Error("it is quiet after less than two heartbeats")
	}
	p.run(10_501*ms, 0) // last heard at 9900 ms
	if !p.m.Quiet() {
		t.Error("it is not quiet after two heartbeats")
	}
	p.want()
	p.beat = p.now
	p.run(10_502*ms, 0)
	if p.m.Quiet() {
		t.Error("it is quiet although it was heard")
	}
}
