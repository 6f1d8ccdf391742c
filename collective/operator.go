package collective

import "cmp"

// Number is the constraint of arithmetic operators.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64
}

// Integer is the constraint of operators on bits.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Operator combines the elements of two slices of equal length. It must be associative.
// It need not be commutative: the left elements are those of lower tasks. The order of
// combining depends only on the number of tasks and of elements, on which tasks share a host
// at the start, and on [Network]; never on failures. So floating-point sums are the same bit
// by bit on all processes, and in all runs on the same hosts.
type Operator[T any] struct {
	// Name identifies the operator. Processes that use different ones in one call
	// get a MismatchError.
	Name string
	// Combine writes left ⊕ right to into, which may be left or right itself.
	Combine func(into, left, right []T)
}

// NewOperator returns an operator that applies f to each pair of elements.
func NewOperator[T any](name string, f func(left, right T) T) Operator[T] {
	return Operator[T]{name, func(into, left, right []T) {
		for i, l := range left {
			into[i] = f(l, right[i])
		}
	}}
}

// Sum returns the operator that adds.
func Sum[T Number]() Operator[T] {
	return Operator[T]{"sum", func(into, left, right []T) {
		right = right[:len(left)]
		into = into[:len(left)]
		for i, l := range left {
			into[i] = l + right[i]
		}
	}}
}

// Prod returns the operator that multiplies.
func Prod[T Number]() Operator[T] {
	return NewOperator("prod", func(a, b T) T { return a * b })
}

// Min returns the operator that keeps the smaller element.
func Min[T cmp.Ordered]() Operator[T] {
	return NewOperator("min", func(a, b T) T { return min(a, b) })
}

// Max returns the operator that keeps the larger element.
func Max[T cmp.Ordered]() Operator[T] {
	return NewOperator("max", func(a, b T) T { return max(a, b) })
}

// And returns the operator that keeps the bits set in both elements.
func And[T Integer]() Operator[T] {
	return NewOperator("and", func(a, b T) T { return a & b })
}

// Or returns the operator that keeps the bits set in either element.
func Or[T Integer]() Operator[T] {
	return NewOperator("or", func(a, b T) T { return a | b })
}
