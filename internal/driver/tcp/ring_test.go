package tcp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// newRing returns both sides of a ring in memory of this process, and that memory.
func newRing(size int, wakeConsumer, wakeProducer func()) (*producer, *consumer, []byte) {
	words := make([]uint64, (ringHead+size)/8+cacheLine)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	head, data := b[:ringHead], b[ringHead:ringHead+size:ringHead+size]
	return &producer{ring: makeRing(head, data, wakeConsumer)}, &consumer{ring: makeRing(head, data, wakeProducer)},
		b[:ringHead+size]
}

// Two goroutines that sleep whenever they can move a stream through a ring. A lost
// wake-up would stop it.
func TestRingLosesNoBytesAndNoWakeUps(t *testing.T) {
	const size, total = 1 << 10, 4 << 20
	forConsumer, forProducer := make(chan struct{}, 1), make(chan struct{}, 1)
	wake := func(c chan struct{}) func() {
		return func() {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
	p, c, _ := newRing(size, wake(forConsumer), wake(forProducer))
	sleep := func(c chan struct{}) {
		select {
		case <-c:
		case <-time.After(time.Minute):
			panic("a wake-up is lost")
		}
	}
	go func() {
		r, next, b := rand.New(rand.NewPCG(1, 2)), byte(0), make([]byte, 3*size)
		for sent := 0; sent < total; {
			chunk := b[:min(1+r.IntN(len(b)), total-sent)]
			for i := range chunk {
				chunk[i] = next
				next += 7
			}
			for sent += len(chunk); len(chunk) > 0; {
				n, err := p.put(chunk)
				p.publish()
				chunk = chunk[n:]
				if err != nil {
					panic(err)
				}
				if rest, _ := p.rest(); len(chunk) > 0 && rest {
					sleep(forProducer)
				}
			}
		}
	}()
	r, next, b := rand.New(rand.NewPCG(3, 4)), byte(0), make([]byte, 2*size)
	for got := 0; got < total; {
		n, err := c.get(b[:1+r.IntN(len(b))])
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range b[:n] {
			if v != next {
				t.Fatalf("a byte after %d is %d, want %d", got, v, next)
			}
			next += 7
		}
		got += n
		if n == 0 {
			if rest, err := c.rest(); err != nil {
				t.Fatal(err)
			} else if rest {
				sleep(forConsumer)
			}
		}
	}
}

// A peer may write anything to the shared memory. This process then gets wrong bytes or
// errRing, and touches no memory but the ring's.
func FuzzScribbledRing(f *testing.F) {
	f.Add([]byte{0, 0, 255, 64, 1, 255, 128, 2, 3})
	f.Add(bytes.Repeat([]byte{7, 200, 9}, 30))
	f.Fuzz(func(t *testing.T, script []byte) {
		const size = 256
		p, c, memory := newRing(size, func() {}, func() {})
		buffer := make([]byte, 2*size)
		for len(script) >= 3 {
			what, at, value := script[0], int(script[1])<<1, script[2]
			script = script[3:]
			var n int
			var err error
			switch what % 5 {
			case 0:
				n, err = p.put(buffer[:value])
				p.publish()
			case 1:
				n, err = c.get(buffer[:value])
			case 2:
				_, err = p.rest()
			case 3:
				_, err = c.rest()
			case 4: // The peer scribbles.
				memory[at%len(memory)] = value
			}
			if n > size || err != nil && !errors.Is(err, errRing) {
				t.Fatalf("%d bytes, %v", n, err)
			}
			if err != nil {
				return
			}
		}
	})
}
