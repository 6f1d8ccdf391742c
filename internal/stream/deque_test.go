package stream

import "testing"

func TestDequeKeepsOrderWhileItGrows(t *testing.T) {
	var d deque[int]
	pushed, popped := 0, 0
	for round := range 1000 {
		for range round % 7 {
			d.Push(pushed)
			pushed++
		}
		for range min(round%5, d.Len()) {
			if v := d.Pop(); v != popped {
				t.Fatalf("popped %d, want %d", v, popped)
			}
			popped++
		}
		for i := range d.Len() {
			if v := *d.At(i); v != popped+i {
				t.Fatalf("at %d: %d, want %d", i, v, popped+i)
			}
		}
		if d.Len() != pushed-popped {
			t.Fatalf("length %d, want %d", d.Len(), pushed-popped)
		}
	}
}
