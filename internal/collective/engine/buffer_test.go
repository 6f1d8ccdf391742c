package engine

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// Every size has the smallestClass room that is enough for it, and memory of that room
// goes back to where it came from.
func TestSizeClasses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 100_000 {
		n := 1 + rng.IntN(1<<(1+rng.IntN(30)))
		c := classOf(n)
		if classSize(c) < n || c > 0 && classSize(c-1) >= n || classOf(classSize(c)) != c {
			t.Fatalf("%d bytes are of class %d, which has %d; the one before has %d", n, c, classSize(c), classSize(max(0, c-1)))
		}
		if n > smallestClass && classSize(c) > n+n/4+1 {
			t.Fatalf("%d bytes take %d", n, classSize(c))
		}
	}
}

// Memory of another size than a class is not pooled, because it would come back
// shorter than it was asked for.
func TestForeignMemoryIsNotPooled(t *testing.T) {
	var p BufferPool
	p.put(make([]byte, smallestClass+1))
	p.put(make([]byte, 0))
	for n := 1; n < 2000; n += 7 {
		if b := p.get(n); len(b) != n || cap(b) != classSize(classOf(n)) {
			t.Fatalf("asked for %d bytes, got %d of %d", n, len(b), cap(b))
		}
	}
}

// A buffer returns to the pool with its last reference, and not before.
func TestBufferIsCounted(t *testing.T) {
	returned := 0
	p := BufferPool{poison: func([]byte) { returned++ }}
	s := p.newBuffer(1000)
	first := unsafe.SliceData(s.Bytes)
	one := s.Payload()
	one.Retain()
	one.Release()
	if returned != 0 || unsafe.SliceData(s.Bytes) != first {
		t.Fatal("it was returned with a reference left")
	}
	one.Release()
	if returned != 1 {
		t.Fatalf("it was returned %d times", returned)
	}
	defer func() {
		if recover() == nil {
			t.Error("it could be dropped once more")
		}
	}()
	one.Release()
}
