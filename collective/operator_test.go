package collective

import (
	"slices"
	"testing"
)

// Each operator combines element by element, also into one of its operands.
func TestOperators(t *testing.T) {
	for _, c := range []struct {
		operator Operator[int8]
		want     []int8
	}{
		{Sum[int8](), []int8{9, -1, 0}},
		{Prod[int8](), []int8{18, -12, 0}},
		{Min[int8](), []int8{3, -4, 0}},
		{Max[int8](), []int8{6, 3, 0}},
		{And[int8](), []int8{2, 0, 0}},
		{Or[int8](), []int8{7, -1, 0}},
	} {
		left, right := []int8{6, -4, 0}, []int8{3, 3, 0}
		into := make([]int8, 3)
		c.operator.Combine(into, left, right)
		c.operator.Combine(left, left, right)
		if !slices.Equal(into, c.want) || !slices.Equal(left, c.want) {
			t.Errorf("%s: %v, and %v in place; want %v", c.operator.Name, into, left, c.want)
		}
	}
}
