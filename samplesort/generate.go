package samplesort

import (
	"context"
	"encoding/binary"
	"math/bits"
)

// The records of gensort, the generator of the sort benchmark: the keys are the high bytes
// of a 128-bit linear congruential generator, which can skip ahead. So each task generates
// its share alone.

// number is a 128-bit number.
type number struct{ high, low uint64 }

func (a number) add(b number) number {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(a.high, b.high, carry)
	return number{high, low}
}

func (a number) multiply(b number) number {
	high, low := bits.Mul64(a.low, b.low)
	return number{high + a.high*b.low + a.low*b.high, low}
}

// step is x → multiplier·x + increment, the generator's step or several of them.
type step struct{ multiplier, increment number }

// oneStep has gensort's constants (the multiplier: L'Ecuyer 1999).
func oneStep() step {
	return step{number{0x2360ed051fc65da4, 0x4385df649fccf645}, number{0x4a696d4772617952, 0x4950202020202001}}
}

func (s step) apply(x number) number { return s.multiplier.multiply(x).add(s.increment) }

// twice returns the step that does what s does twice.
func (s step) twice() step { return step{s.multiplier.multiply(s.multiplier), s.apply(s.increment)} }

// stateAt returns the generator's state after n steps from 0, by repeated squaring.
func stateAt(n uint64) number {
	x := number{}
	for s := oneStep(); n > 0; n >>= 1 {
		if n&1 == 1 {
			x = s.apply(x)
		}
		s = s.twice()
	}
	return x
}

// Generate returns an input of n records as gensort generates them: random keys, and the
// record's number. Its format is [Records].
func Generate(n int) Input { return generated(n) }

type generated int

func (g generated) Read(_ context.Context, _ Format, task, tasks int) ([]byte, error) {
	first, end := share(int(g), task, tasks)
	b := make([]byte, 0, (end-first)*recordSize)
	x, s := stateAt(uint64(first)), oneStep()
	for i := first; i < end; i++ {
		x = s.apply(x)
		b = appendRecord(b, x, uint64(i))
	}
	return b, nil
}

const hexDigits = "0123456789ABCDEF"

// appendRecord appends a record: ten bytes key, 32 digits number, 48 bytes filler, and
// fixed bytes between them.
func appendRecord(b []byte, x number, i uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, x.high)
	b = binary.BigEndian.AppendUint16(b, uint16(x.low>>48))
	b = append(b, "\x00\x110000000000000000"...)
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[i>>shift&15])
	}
	b = append(b, 0x88, 0x99, 0xaa, 0xbb)
	for shift := 44; shift >= 0; shift -= 4 {
		d := hexDigits[x.low>>shift&15]
		b = append(b, d, d, d, d)
	}
	return append(b, 0xcc, 0xdd, 0xee, 0xff)
}
