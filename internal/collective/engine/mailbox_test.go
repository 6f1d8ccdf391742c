package engine

import "testing"

// A mailbox finds every slot, however many there are, and after it was cleared none of
// before. It uses the memory again.
func TestMailboxFindsItsSlots(t *testing.T) {
	var m mailbox
	for _, n := range []int{3, maxListed, maxListed + 1, 100, 2} {
		slots := make(map[*slot]envelope)
		for i := range n {
			k := envelope{step: i % 3, from: i, to: i / 2}
			s := m.slot(k)
			if s.here || s.envelope != k || slots[s] != (envelope{}) {
				t.Fatalf("of %d slots, number %d is in use already", n, i)
			}
			s.here, slots[s] = true, k
		}
		for s, k := range slots {
			if m.slot(k) != s {
				t.Fatalf("of %d slots, that of %v is not found again", n, k)
			}
		}
		if len(m.all()) != n {
			t.Fatalf("%d slots in use, want %d", len(m.all()), n)
		}
		m.clear()
	}
	if allocs := testing.AllocsPerRun(10, func() {
		for i := range 100 {
			m.slot(envelope{step: i})
		}
		m.clear()
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
