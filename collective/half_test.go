package collective

import (
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// Every number of 16 bits is the same one as a float32, and comes back.
func TestHalvesAreKept(t *testing.T) {
	for bits := range 1 << 16 {
		f, b := Float16{uint16(bits)}, BFloat16{uint16(bits)}
		if g := f.Float32(); g == g && NewFloat16(g) != f || g != g && NewFloat16(g).Bits&halfExponent != halfExponent {
			t.Fatalf("Float16 %04x is %v, and that %04x", bits, g, NewFloat16(g).Bits)
		}
		if g := b.Float32(); g == g && NewBFloat16(g) != b || g != g && !math.IsNaN(float64(NewBFloat16(g).Float32())) {
			t.Fatalf("BFloat16 %04x is %v, and that %04x", bits, g, NewBFloat16(g).Bits)
		}
	}
	if one, most := (Float16{0x3c00}).Float32(), (Float16{0x7bff}).Float32(); one != 1 || most != 65504 {
		t.Errorf("one is %v, the largest %v", one, most)
	}
	if least := (Float16{1}).Float32(); least != 0x1p-24 {
		t.Errorf("the smallest Float16 is %v", least)
	}
}

// Rounding takes the nearest of all numbers, and of two the one whose last bit is 0.
func TestHalvesAreNearest(t *testing.T) {
	nearest := func(widened func(uint16) float32) func(float32) uint16 {
		const infinity = 0x7f80
		var all []float64 // the finite ones, without sign, by their bits
		for bits := uint16(0); !math.IsInf(float64(widened(bits)), 0) && bits < infinity; bits++ {
			all = append(all, float64(widened(bits)))
		}
		all = append(all, 2*all[len(all)-1]-all[len(all)-2]) // where the infinity begins to be nearest
		return func(f float32) uint16 {
			x := math.Abs(float64(f))
			i := min(sort.SearchFloat64s(all, x), len(all)-1)
			if i > 0 && (x-all[i-1] < all[i]-x || x-all[i-1] == all[i]-x && i%2 == 1) {
				i--
			}
			return uint16(i) | uint16(math.Float32bits(f)>>16&0x8000)
		}
	}
	half := nearest(func(b uint16) float32 { return Float16{b}.Float32() })
	brain := nearest(func(b uint16) float32 { return BFloat16{b}.Float32() })
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(
			rapid.Float32(),
			rapid.Float32Range(-70000, 70000),
			rapid.Float32Range(-0x1p-13, 0x1p-13),
			rapid.Map(rapid.Uint16(), func(b uint16) float32 { // between two neighbors
				return (Float16{b &^ 0x4000}.Float32() + Float16{b&^0x4000 + 1}.Float32()) / 2
			}),
		).Draw(t, "f")
		if f != f {
			return
		}
		if got, want := NewFloat16(f).Bits, half(f); got != want {
			t.Fatalf("Float16 of %v (%x) is %04x, want %04x", f, f, got, want)
		}
		if got, want := NewBFloat16(f).Bits, brain(f); got != want {
			t.Fatalf("BFloat16 of %v (%x) is %04x, want %04x", f, f, got, want)
		}
	})
}

func TestRoundedOperator(t *testing.T) {
	left, right := make([]BFloat16, 1000), make([]BFloat16, 1000)
	for i := range left {
		left[i], right[i] = NewBFloat16(float32(i)), NewBFloat16(0.5)
	}
	sum := Rounded[BFloat16](Sum[float32]())
	into := make([]BFloat16, 1000)
	sum.Combine(into, left, right)
	for i, h := range into {
		if want := NewBFloat16(left[i].Float32() + 0.5); h != want {
			t.Fatalf("%d: %v, want %v", i, h.Float32(), want.Float32())
		}
	}
	if elementOf[Float16]() == elementOf[BFloat16]() || elementOf[Float16]() == elementOf[uint16]() {
		t.Error("two types have one mark")
	}
}
