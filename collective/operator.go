package collective

import "cmp"

// Number is what operators calculate with.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64
}

// Integer is what operators on bits work on.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Operator combines the elements of two slices of one length. It must be
// associative. It need not be commutative: the left ones come from lower tasks.
// Which pairs are combined first depends only on the number of tasks and of
// elements, never on who dies: floating-point sums come out the same, bit by bit.
type Operator[T any] struct {
	// Name tells operators apart, so that different ones in one call are noticed.
	Name string
	// Combine writes left ⊕ right into into, which may be either of them.
	Combine func(into, left, right []T)
}

// NewOperator makes an operator of a function of two elements.
func NewOperator[T any](name string, f func(left, right T) T) Operator[T] {
	return Operator[T]{name, func(into, left, right []T) {
		for i, l := range left {
			into[i] = f(l, right[i])
		}
	}}
}

// Sum adds.
func Sum[T Number]() Operator[T] {
	return Operator[T]{"sum", func(into, left, right []T) {
		right = right[:len(left)]
		into = into[:len(left)]
		for i, l := range left {
			into[i] = l + right[i]
		}
	}}
}

// Prod multiplies.
func Prod[T Number]() Operator[T] {
	return NewOperator("prod", func(a, b T) T { return a * b })
}

// Min takes the smaller one.
func Min[T cmp.Ordered]() Operator[T] {
	return NewOperator("min", func(a, b T) T { return min(a, b) })
}

// Max takes the larger one.
func Max[T cmp.Ordered]() Operator[T] {
	return NewOperator("max", func(a, b T) T { return max(a, b) })
}

// And takes the bits that are set in both.
func And[T Integer]() Operator[T] {
	return NewOperator("and", func(a, b T) T { return a & b })
}

// Or takes the bits that are set in either.
func Or[T Integer]() Operator[T] {
	return NewOperator("or", func(a, b T) T { return a | b })
}
