package membership

import (
	"errors"
	"testing"
)

// Machines that share what they work out act as those that do not, whatever
// happens to them.
func TestSharingChangesNothing(t *testing.T) {
	for seed := range uint64(60) {
		apart := runSchedule(t, seed)
		s := newSchedule(t, seed)
		for _, h := range s.n.hosts {
			h.m.memo = s.n.hosts[0].m.memo
		}
		if err := s.run(); err != nil || s.totals != apart {
			t.Errorf("seed %d: %+v, %v; without sharing: %+v", seed, s.totals, err, apart)
		}
	}
}

func TestSibling(t *testing.T) {
	n := newNetwork(t, 3, 1, nil)
	first := n.hosts[0].m
	m, err := first.Sibling(2, n.hosts[2].log)
	if err != nil || m.config.Self != n.hosts[2].self || m.self != 2 || m.memo != first.memo {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := first.Sibling(3, nil); !errors.Is(err, ErrView) {
		t.Errorf("rank 3 of 3: %v", err)
	}
}
