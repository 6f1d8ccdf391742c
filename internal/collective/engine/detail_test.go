package engine

import "testing"

// A detail is named if it is one of the usual, up to the most deaths that are usual.
func TestDetailsAreNamed(t *testing.T) {
	const selection = 7
	corrected := func(dead uint64) Signature {
		return Signature{Mode: Corrected, Detail: selection + DetailOf("int8", "max") + dead}
	}
	for want, s := range map[string]Signature{
		" by max of int8":              {Detail: selection + DetailOf("int8", "max")},
		" of uint8":                    {Detail: selection + DetailOf("uint8")},
		" of boolean":                  {Detail: selection + DetailOf(boolean)},
		" by or of boolean":            {Detail: selection + DetailOf(boolean, "or")},
		" by max of int8, for 0 dead":  corrected(0),
		" by max of int8, for 64 dead": corrected(64),
		" by an operator, an element type, Corrected or Network that differs": corrected(65),
	} {
		if got := s.detailText(selection); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
