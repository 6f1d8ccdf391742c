package arbiter_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/contrib/arbiter"
)

// memory is a store for tests.
type memory struct {
	mu      sync.Mutex
	records map[string][]byte
	after   func() error // nil, or the error of a swap that has happened
}

func newMemory() *memory { return &memory{records: make(map[string][]byte)} }

func (s *memory) Load(_ context.Context, group string) ([]byte, arbiter.Swap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.records[group]
	return was, func(_ context.Context, record []byte) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !slices.Equal(s.records[group], was) {
			return false, nil
		}
		s.records[group] = record
		if s.after != nil {
			return false, s.after()
		}
		return true, nil
	}, nil
}

// side returns members whose ranks are in order or not.
func side(ranks ...int) (members []pleach.Member) {
	for _, r := range ranks {
		members = append(members, pleach.Member{Rank: r, Incarnation: uint64(r) + 1})
	}
	return members
}

// A view is granted to one side only, and none below the highest one.
func TestGrant(t *testing.T) {
	restarted := side(0, 1)
	restarted[1].Incarnation = 9
	a := arbiter.New(newMemory())
	for i, c := range []struct {
		group string
		view  uint64
		side  []pleach.Member
		want  bool
	}{
		{"web", 7, side(0, 1), true},
		{"web", 7, side(2, 3), false},
		{"web", 7, side(1, 0), true}, // again
		{"web", 7, restarted, false}, // another process has the rank
		{"web", 7, side(0), false},
		{"web", 6, side(0, 1), false},
		{"web", 9, side(2, 3), true},
		{"web", 8, side(2, 3), false},
		{"web", 7, side(0, 1), false},
		{"web", 9, side(2, 3), true},
		{"other", 1, side(2, 3), true},
		{"", 1, side(2, 3), true}, // a name like any other
	} {
		got, err := a.Grant(t.Context(), pleach.ArbiterClaim{Group: c.group, View: c.view, Side: c.side})
		if err != nil || got != c.want {
			t.Errorf("claim %d: %v, %v, want %v", i, got, err, c.want)
		}
	}
	for _, c := range []pleach.ArbiterClaim{{Group: "web", Side: side(1)}, {Group: "web", View: 1}} {
		if got, err := a.Grant(t.Context(), c); err == nil {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A side whose grant was stored, and whose reply was lost, has it when it asks again.
func TestLostReply(t *testing.T) {
	s := newMemory()
	lost := errors.New("lost")
	s.after = func() error { return lost }
	a := arbiter.New(s)
	ours := pleach.ArbiterClaim{Group: "web", View: 2, Side: side(0)}
	theirs := pleach.ArbiterClaim{Group: "web", View: 2, Side: side(1)}
	if _, err := a.Grant(t.Context(), ours); !errors.Is(err, lost) {
		t.Fatalf("%v", err)
	}
	s.after = nil
	if got, err := a.Grant(t.Context(), theirs); got || err != nil {
		t.Errorf("the other side: %v, %v", got, err)
	}
	if got, err := a.Grant(t.Context(), ours); !got || err != nil {
		t.Errorf("again: %v, %v", got, err)
	}
}

// A record that cannot be read grants nothing.
func TestDamagedRecord(t *testing.T) {
	s := newMemory()
	for _, text := range []string{"", "{", "{}", `{"view":3}`, `{"view":-1}`} {
		s.records["web"] = []byte(text)
		got, err := arbiter.New(s).Grant(t.Context(), pleach.ArbiterClaim{Group: "web", View: 9, Side: side(0)})
		if got || err == nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
