package engine

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A process whose call differs from that of another one learns of it, whichever came first:
// also if that was rank 0.
func TestOddCallOfRankZero(t *testing.T) {
	kinds := map[int]Kind{0: Alltoall, 2: Barrier}
	for _, order := range [][]int{{0, 2}, {2, 0}} {
		e, err := New(Config{Rank: 1, Size: 3, Link: &counter{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range order {
			m := taskMessage{
				signature: Signature{Kind: kinds[from], Root: NoRoot, Length: NoLength},
				envelope:  envelope{from: from},
			}
			if err := e.Receive(from, m.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		err = e.Comm().Do(t.Context(), Signature{Kind: Barrier, Root: NoRoot, Length: NoLength},
			func(*Task) error { return nil })
		odd := new(MismatchError)
		if !errors.As(err, &odd) || odd.Other != 0 {
			t.Errorf("%v come: %v", order, err)
		}
		e.Close()
	}
}

// The memory of a message that comes again is given back.
func TestDuplicateGivesItsMemoryBack(t *testing.T) {
	returned := 0
	pool := BufferPool{poison: func([]byte) { returned++ }}
	o := new(callState)
	for i := range 3 {
		if o.put(envelope{from: 1}, pool.newBuffer(100).Payload(), 7) || returned != i {
			t.Errorf("after message %d, %d buffers are returned", i, returned)
		}
	}
}

// A view without members changes nothing: nobody would own the tasks.
func TestEmptyView(t *testing.T) {
	e := quiet(t)
	if e.peers.install(2, nil) || e.peers.owners != nil {
		t.Errorf("owners %v", e.peers.owners)
	}
}

// Processes that hold a call up before it begins are removed after the time that the job sets, as
// long as they are the lesser part. What was not asked of a process does not count against it.
func TestSlowestAreAccused(t *testing.T) {
	reported := func(s *peerStatus) { s.reportedAt = 2 }
	upSince := func(t time.Duration) func(s *peerStatus) {
		return func(s *peerStatus) { s.asking.ask(1); s.upSince = t }
	}
	for name, c := range map[string]struct {
		waited  time.Duration
		behind  []int
		asked   func(s *peerStatus)
		evicted []int
	}{
		"a moment":         {time.Second - 1, []int{3}, reported, nil},
		"a second":         {time.Second, []int{3}, reported, []int{3}},
		"two of them":      {time.Second, []int{1, 3}, reported, []int{1, 3}},
		"the greater part": {time.Second, []int{1, 2, 3}, reported, nil},
		"no answer":        {time.Second, []int{3}, func(s *peerStatus) { s.asking.ask(1) }, []int{3}},
		"asked just now":   {time.Second, []int{3}, func(s *peerStatus) { s.asking.ask(time.Second) }, nil},
		"not asked":        {time.Second, []int{3}, func(*peerStatus) {}, nil},
		"not started":      {time.Hour, []int{3}, upSince(0), nil},
		"started late":     {time.Hour, []int{3}, upSince(time.Hour - time.Second + 2), nil},
		"started in time":  {time.Hour, []int{3}, upSince(time.Hour - time.Second + 1), []int{3}},
	} {
		var evicted []int
		e, err := New(Config{Size: 5, Link: &counter{}, ProgressTimeout: time.Second, Evict: func(rank int, why error) {
			if stuck := new(StuckError); !errors.As(why, &stuck) || stuck.Rank != rank || stuck.Waited != c.waited {
				t.Errorf("%s: %v", name, why)
			}
			evicted = append(evicted, rank)
		}})
		if err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		for r := range 5 {
			e.peers.of(r).finished, e.peers.of(r).upSince = 9, 1
			if slices.Contains(c.behind, r) {
				e.peers.of(r).finished = 0
				c.asked(e.peers.of(r))
			}
		}
		e.accuseSlowest(new(callState), Signature{Kind: Barrier}, 1, 1+c.waited)
		e.mu.Unlock()
		if !slices.Equal(evicted, c.evicted) {
			t.Errorf("%s: %v are removed, want %v", name, evicted, c.evicted)
		}
		e.Close()
	}
}
