package detect

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// scripted makes a detector whose dials have the given outcomes, the last one
// again and again.
func scripted(outcomes ...func(context.Context) error) *Connections {
	return scriptedWith(ConnectionsConfig{}, outcomes...)
}

func scriptedWith(config ConnectionsConfig, outcomes ...func(context.Context) error) *Connections {
	c := NewConnections(config)
	var dials atomic.Int32
	c.dial = func(ctx context.Context, _ string) error {
		return outcomes[min(int(dials.Add(1)), len(outcomes))-1](ctx)
	}
	return c
}

func accepts(context.Context) error { return nil }

func refuses(context.Context) error {
	return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func noAnswer(ctx context.Context) error {
	<-ctx.Done()
	return &net.OpError{Op: "dial", Err: ctx.Err()}
}

func outOfFiles(context.Context) error {
	return &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
}

// stopped is a dial during which this very process was stopped.
func stopped(context.Context) error {
	time.Sleep(time.Minute)
	return &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
}

var known = Peer{Rank: 1, Incarnation: 5, Address: "peer:1"}

// What is reported after a connection was lost, by what dialing anew shows.
func TestConnectionsProbeAgain(t *testing.T) {
	type outcome = func(context.Context) error
	for name, c := range map[string]struct {
		dials []outcome
		why   error // nil: not suspected.
		by    time.Duration
	}{
		"refused":                              {[]outcome{refuses}, ErrGone, time.Millisecond},
		"a dying process still listens":        {[]outcome{accepts, refuses}, ErrGone, 10 * time.Millisecond},
		"it is there":                          {[]outcome{accepts}, nil, time.Hour},
		"a silent host":                        {[]outcome{noAnswer}, ErrSilent, 500 * time.Millisecond},
		"one dial was lost":                    {[]outcome{noAnswer, accepts}, nil, time.Hour},
		"silent, then refused":                 {[]outcome{noAnswer, refuses}, ErrGone, 500 * time.Millisecond},
		"this process was stopped":             {[]outcome{stopped, stopped, accepts}, nil, time.Hour},
		"this process was stopped, peer died":  {[]outcome{stopped, refuses}, ErrGone, time.Hour},
		"stopped between two silences":         {[]outcome{noAnswer, stopped, noAnswer, accepts}, nil, time.Hour},
		"this process has no descriptors left": {[]outcome{outOfFiles}, nil, time.Hour},
		"it has some again": {
			[]outcome{outOfFiles, outOfFiles, outOfFiles, outOfFiles, refuses},
			ErrGone,
			time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := scripted(c.dials...)
				d.Watch(PeerList([]Peer{known}))
				j := started(t, d)
				d.Up(1, 5)
				d.Down(1, errLost)
				testutil.Advance(c.by)
				if c.why == nil {
					j.want(t)
					return
				}
				if cause := j.want(t, suspected(1, 5)); !errors.Is(cause, c.why) || !errors.Is(cause, errLost) {
					t.Errorf("cause is %v, want %v", cause, c.why)
				}
			})
		})
	}
}

func TestConnectionsWithdraw(t *testing.T) {
	t.Run("a connection is there again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := scripted(noAnswer)
			d.Watch(PeerList([]Peer{known}))
			j := started(t, d)
			d.Down(1, errLost)
			testutil.Advance(time.Second)
			d.Up(1, 5)
			j.want(t, suspected(1, 5), trusted(1, 5))
		})
	})
	t.Run("a silent host answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := scripted(noAnswer, noAnswer, accepts)
			d.Watch(PeerList([]Peer{known}))
			j := started(t, d)
			d.Down(1, errLost)
			testutil.Advance(time.Second)
			d.Down(1, errLost)
			j.want(t, suspected(1, 5), trusted(1, 5))
		})
	})
	t.Run("a process that is gone is not brought back by another that listens there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := scripted(refuses, accepts)
			d.Watch(PeerList([]Peer{known}))
			j := started(t, d)
			d.Down(1, errLost)
			testutil.Advance(time.Second)
			d.Down(1, errLost)
			d.Up(1, 6)
			testutil.Advance(time.Hour)
			j.want(t, suspected(1, 5))
		})
	})
}

// A connection that comes while a peer is being looked at proves more than what
// the look shows.
func TestUpEndsAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(noAnswer)
		d.Watch(PeerList([]Peer{known}))
		j := started(t, d)
		d.Down(1, errLost)
		testutil.Advance(300 * time.Millisecond)
		d.Up(1, 5)
		testutil.Advance(time.Hour)
		j.want(t)
	})
}

// A Down during a probe that it is too late for starts another probe.
func TestNewsDuringAProbeIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(accepts, accepts, accepts, accepts, refuses)
		d.Watch(PeerList([]Peer{known}))
		j := started(t, d)
		d.Down(1, errLost)
		testutil.Advance(200 * time.Millisecond)
		d.Down(1, errLost)
		j.want(t, suspected(1, 5))
	})
}

// In a static group, peers are watched before they are started.
func TestStartTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(refuses)
		d.Watch(PeerList([]Peer{{Rank: 1, Address: "peer:1"}, {Rank: 2, Address: "peer:2"}}))
		j := started(t, d)
		for range 29 {
			d.Down(1, errLost)
			d.Down(2, errLost)
			testutil.Advance(time.Second)
		}
		j.want(t)
		d.Up(2, 8)
		testutil.Advance(10 * time.Second)
		j.want(t, suspected(1, 0))
		d.Down(2, errLost) // It has been started: no grace any more.
		testutil.Advance(time.Millisecond)
		j.want(t, suspected(1, 0), suspected(2, 8))
		d.Up(1, 3)
		j.want(t, suspected(1, 0), suspected(2, 8), trusted(1, 3))
	})
}

// Under pleach run a peer listens before it runs. One that refuses a connection is gone,
// also if it was never connected; one that is only slow to start is not.
func TestListeningPeerThatRefusesIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scriptedWith(ConnectionsConfig{Listening: true}, accepts, accepts, noAnswer, refuses)
		d.Watch(PeerList([]Peer{{Rank: 1, Address: "peer:1"}}))
		j := started(t, d)
		for range 3 {
			d.Down(1, errLost)
			testutil.Advance(time.Second)
		}
		j.want(t)
		d.Down(1, errLost)
		testutil.Advance(time.Millisecond)
		j.want(t, suspected(1, 0))
		d.Up(1, 3) // The dial was to another process.
		j.want(t, suspected(1, 0), trusted(1, 3))
	})
}

// That this member does not know where a peer is says nothing about the peer.
func TestUnknownAddressIsNotSuspected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(noAnswer)
		d.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 5}}))
		j := started(t, d)
		d.Down(1, errLost)
		testutil.Advance(time.Hour)
		j.want(t)
	})
}

func TestOnlyWatchedPeersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(noAnswer)
		j := started(t, d)
		d.Down(1, errLost)
		d.Watch(PeerList([]Peer{known}))
		testutil.Advance(time.Second)
		d.Down(1, errLost)
		testutil.Advance(time.Millisecond)
		d.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 6, Address: "peer:1"}})) // The probe was about another process.
		testutil.Advance(time.Hour)
		j.want(t)
		d.Down(1, errLost)
		d.Watch(PeerList(nil))
		testutil.Advance(time.Hour)
		j.want(t)
	})
}

// A peer that is no longer watched is not dialed any more.
func TestWatchEndsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		d := scripted(func(context.Context) error { dials++; return nil })
		d.Watch(PeerList([]Peer{known}))
		started(t, d)
		d.Down(1, errLost)
		testutil.Advance(time.Millisecond)
		d.Watch(PeerList(nil))
		testutil.Advance(time.Hour)
		if dials != 1 {
			t.Errorf("dialed %d times, want 1", dials)
		}
	})
}

func TestCloseEndsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(noAnswer)
		d.Watch(PeerList([]Peer{known, {Rank: 2, Address: "peer:2"}}))
		j := newJournal()
		if err := d.Start(j.add); err != nil {
			t.Fatal(err)
		}
		d.Down(1, errLost)
		d.Down(2, errLost)
		closed(t, d)
		d.Down(1, errLost)
		testutil.Advance(time.Hour)
		j.want(t)
	})
}

// No more than so many dials at a time, and all get their turn.
func TestDialsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewConnections(ConnectionsConfig{MaxDials: 3})
		var mu sync.Mutex
		underWay, most := 0, 0
		d.dial = func(ctx context.Context, _ string) error {
			mu.Lock()
			underWay++
			most = max(most, underWay)
			mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			mu.Lock()
			underWay--
			mu.Unlock()
			return refuses(ctx)
		}
		var peers []Peer
		for r := range protocol.Rank(20) {
			peers = append(peers, Peer{Rank: r, Incarnation: 1, Address: "peer:1"})
		}
		d.Watch(PeerList(peers))
		j := started(t, d)
		for _, p := range peers {
			d.Down(p.Rank, errLost)
		}
		testutil.Advance(10 * time.Second)
		if got := len(j.all()); got != 20 {
			t.Errorf("%d of 20 are suspected", got)
		}
		if most != 3 {
			t.Errorf("%d dials at a time, want 3", most)
		}
	})
}

// That another process answers at the address of a peer is news of the process that was there: a
// view may have made the other one the peer meanwhile.
func TestConnectionsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := scripted(accepts)
		d.Watch(PeerList([]Peer{known}))
		j := started(t, d)
		d.Replaced(1, 4)
		testutil.Advance(time.Second)
		j.want(t)
		d.Replaced(1, 5)
		testutil.Advance(time.Second)
		j.want(t, suspected(1, 5))
	})
}
