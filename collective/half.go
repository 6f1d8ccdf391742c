package collective

import "math"

// Numbers of 16 bits, as training uses them. Go has none, so they are types of their own
// that hold the bits: they are sent as they are, and operators work in float32.

// Float16 is a number of IEEE 754's binary16: 11 bits of precision, up to 65504.
type Float16 struct{ Bits uint16 }

// BFloat16 is the upper half of a float32: 8 bits of precision, and the range of float32.
type BFloat16 struct{ Bits uint16 }

// Half is the constraint of [Rounded].
type Half interface{ Float16 | BFloat16 }

// Rounded returns an operator on numbers of 16 bits: it applies op in float32 and rounds the
// result to the nearest, ties to even.
//
//	sum := collective.Rounded[collective.BFloat16](collective.Sum[float32]())
func Rounded[T Half](op Operator[float32]) Operator[T] {
	rounded := Operator[T]{Name: op.Name + " rounded"}
	if op.Try != nil {
		rounded.Try = func(into, left, right []T) error { return combineRounded(op.Try, into, left, right) }
		return rounded
	}
	combine := func(into, left, right []float32) error {
		op.Combine(into, left, right)
		return nil
	}
	rounded.Combine = func(into, left, right []T) { _ = combineRounded(combine, into, left, right) }
	return rounded
}

// combineRounded applies combine to blocks of float32, and rounds what it writes.
func combineRounded[T Half](combine func(into, left, right []float32) error, into, left, right []T) error {
	const block = 256
	var l, r [block]float32
	for len(left) > 0 {
		n := min(block, len(left))
		widen(l[:n], left[:n])
		widen(r[:n], right[:n])
		if err := combine(l[:n], l[:n], r[:n]); err != nil {
			return err
		}
		narrow(into[:n], l[:n])
		into, left, right = into[n:], left[n:], right[n:]
	}
	return nil
}

// widen writes the numbers of from to into.
func widen[T Half](into []float32, from []T) {
	switch from := any(from).(type) {
	case []Float16:
		for i, h := range from {
			into[i] = h.Float32()
		}
	case []BFloat16:
		for i, h := range from {
			into[i] = h.Float32()
		}
	}
}

// narrow writes the numbers of from to into, rounded.
func narrow[T Half](into []T, from []float32) {
	switch into := any(into).(type) {
	case []Float16:
		for i, f := range from {
			into[i] = NewFloat16(f)
		}
	case []BFloat16:
		for i, f := range from {
			into[i] = NewBFloat16(f)
		}
	}
}

// NewBFloat16 rounds f to the nearest number, ties to even.
func NewBFloat16(f float32) BFloat16 {
	bits := math.Float32bits(f)
	if f != f {
		return BFloat16{uint16(bits>>16) | 0x40} // quiet, so that cutting bits off leaves no infinity
	}
	bits += 0x7fff + bits>>16&1
	return BFloat16{uint16(bits >> 16)}
}

// Float32 returns the same number.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h.Bits) << 16) }

// Of a binary16, by the fields of IEEE 754.
const (
	halfExponent   = 0x7c00
	halfFraction   = 0x03ff
	biasDifference = 127 - 15 // of the exponents of float32 and binary16
)

// NewFloat16 rounds f to the nearest number, ties to even. What is too large becomes an
// infinity.
func NewFloat16(f float32) Float16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	exponent := int(bits>>23&0xff) - biasDifference
	fraction := bits & 0x7fffff
	switch {
	case f != f:
		return Float16{sign | halfExponent | 0x200 | uint16(fraction>>13)}
	case exponent >= 31:
		return Float16{sign | halfExponent}
	case exponent < -10: // less than half of the smallest
		return Float16{sign}
	case exponent <= 0: // subnormal: the leading 1 is written out
		return Float16{sign | uint16(roundShift(fraction|1<<23, uint(14-exponent)))}
	}
	// A carry out of the fraction goes into the exponent, and from the largest to infinity.
	return Float16{sign | uint16(roundShift(uint32(exponent)<<23|fraction, 13))}
}

// roundShift returns x / 2^n, rounded to the nearest, ties to even.
func roundShift(x uint32, n uint) uint32 {
	half := uint32(1) << (n - 1)
	return (x + half - 1 + x>>n&1) >> n
}

// Float32 returns the same number.
func (h Float16) Float32() float32 {
	sign := uint32(h.Bits&0x8000) << 16
	exponent := uint32(h.Bits & halfExponent >> 10)
	fraction := uint32(h.Bits & halfFraction)
	switch exponent {
	case 0: // zero, or subnormal: multiples of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+biasDifference)<<23 | fraction<<13)
}
