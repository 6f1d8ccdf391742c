package collective

import (
	"slices"
	"testing"
)

type celsius float32

func roundTrip[T comparable](t *testing.T, in ...T) {
	t.Helper()
	if elementOf[T]() == 0 {
		t.Errorf("%T is not taken for a number", in)
	}
	b := bytesOf(in)
	for shift := range 3 { // aligned or not
		moved := append(make([]byte, shift), b...)[shift:]
		out, ok := numbersIn[T](moved)
		if !ok || !slices.Equal(in, out) {
			t.Errorf("%v became %v", in, out)
		}
	}
	if len(b) > 1 {
		if _, ok := numbersIn[T](b[1:]); ok && len(b)%len(in) == 0 && len(b)/len(in) > 1 {
			t.Errorf("%d bytes were taken for whole elements of %T", len(b)-1, in)
		}
	}
}

func TestNumbersTravelAsTheyAre(t *testing.T) {
	roundTrip(t, 1, -2, 3)
	roundTrip[int8](t, 1, -2)
	roundTrip[uint16](t, 1, 60_000)
	roundTrip[float64](t, 1.5, -2.25)
	roundTrip[celsius](t, 36.6)
	roundTrip(t, complex(1, 2), 3)
	roundTrip[int64](t)
	if elementOf[string]() != 0 || elementOf[bool]() != 0 || elementOf[*int]() != 0 || elementOf[struct{}]() != 0 ||
		elementOf[uintptr]() != 0 {
		t.Error("something with pointers, or of no fixed size, was taken for a number")
	}
}
