package collective

import (
	"cmp"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

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
	// Try is Combine for an operator that can fail; set one of the two. An error ends the
	// call on all processes: the process whose operator failed returns an [*OperatorError],
	// the others an [*AbortError] with its rank and text. No process returns a result before
	// the operator has succeeded on every process, which costs the call a barrier. A call with
	// [Corrected] has no such barrier: it may return a right result on some processes and the
	// error on others.
	Try func(into, left, right []T) error
}

// signatureName is the name that calls compare: an operator that can fail differs from one
// that cannot, because the calls send different messages.
func (op Operator[T]) signatureName() string {
	if op.Try != nil {
		return op.Name + ", which can fail"
	}
	return op.Name
}

// combine combines elements in a task's part of a call.
func (op Operator[T]) combine(t *engine.Task, into, left, right []T) error {
	if op.Try == nil {
		op.Combine(into, left, right)
		return nil
	}
	if err := op.Try(into, left, right); err != nil {
		return &OperatorError{Call: t.Call(), Rank: t.Rank(), Operator: op.Name, Err: err}
	}
	return nil
}

// confirm returns when all tasks have combined their elements, if the operator can fail. A
// task whose operator has failed does not come here, and its error ends the call on all
// processes.
func (op Operator[T]) confirm(t *engine.Task) error {
	if op.Try == nil {
		return nil
	}
	return disseminateFrom(t, confirmStep)
}

// confirmStep is the first step of confirm. It is higher than all steps of the algorithms.
const confirmStep = 1 << 30

// NewOperator returns an operator that applies f to each pair of elements.
func NewOperator[T any](name string, f func(left, right T) T) Operator[T] {
	return Operator[T]{Name: name, Combine: func(into, left, right []T) {
		for i, l := range left {
			into[i] = f(l, right[i])
		}
	}}
}

// Sum returns the operator that adds.
func Sum[T Number]() Operator[T] {
	return Operator[T]{Name: "sum", Combine: func(into, left, right []T) {
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
