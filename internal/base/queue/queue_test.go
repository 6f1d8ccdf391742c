package queue

import "testing"

func TestQueueKeepsOrderWhileItGrows(t *testing.T) {
	var q Queue[int]
	pushed, popped := 0, 0
	for round := range 1000 {
		for range round % 7 {
			q.Push(pushed)
			pushed++
		}
		for range min(round%5, q.Len()) {
			if v := q.Pop(); v != popped {
				t.Fatalf("popped %d, want %d", v, popped)
			}
			popped++
		}
		for i := range q.Len() {
			if v := *q.At(i); v != popped+i {
				t.Fatalf("at %d: %d, want %d", i, v, popped+i)
			}
		}
		if q.Len() != pushed-popped {
			t.Fatalf("length %d, want %d", q.Len(), pushed-popped)
		}
	}
}

// A queue that stays short uses its memory again, and holds on to nothing that was
// popped.
func TestQueueReusesItsMemory(t *testing.T) {
	var q Queue[*int]
	v := new(int)
	allocs := testing.AllocsPerRun(100, func() {
		for range 5 {
			q.Push(v)
		}
		for q.Len() > 0 {
			q.Pop()
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per round", allocs)
	}
	for i, kept := range q.ring {
		if kept != nil {
			t.Errorf("slot %d still holds what was popped", i)
		}
	}
}

func TestTrimKeepsElementsAndSmallRings(t *testing.T) {
	var q Queue[int]
	for i := range 8 {
		q.Push(i)
	}
	q.Trim(0)
	if q.Len() != 8 || *q.At(7) != 7 {
		t.Fatalf("%d elements are left of 8", q.Len())
	}
	for range 8 {
		q.Pop()
	}
	q.Trim(8)
	if len(q.ring) != 8 {
		t.Errorf("a ring of 8 is trimmed to %d, although 8 are allowed", len(q.ring))
	}
	q.Trim(7)
	if len(q.ring) != 0 {
		t.Errorf("an empty queue has a ring of %d, of at most 7", len(q.ring))
	}
}
