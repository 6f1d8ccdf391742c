package main

// #include "library.h"
import "C"

import "github.com/pleach-go/pleach/collective"

// types are the types of elements, by pleach_type.
var types = [...]element{
	C.PLEACH_U8: integers[uint8](), C.PLEACH_I8: integers[int8](),
	C.PLEACH_U16: integers[uint16](), C.PLEACH_I16: integers[int16](),
	C.PLEACH_U32: integers[uint32](), C.PLEACH_I32: integers[int32](),
	C.PLEACH_U64: integers[uint64](), C.PLEACH_I64: integers[int64](),
	C.PLEACH_F16: halves[collective.Float16](), C.PLEACH_BF16: halves[collective.BFloat16](),
	C.PLEACH_F32: numbers[float32](), C.PLEACH_F64: numbers[float64](),
	C.PLEACH_C64: complexes[complex64](), C.PLEACH_C128: complexes[complex128](),
	C.PLEACH_BOOL: booleans(),
}

// boolean is a bool of other languages: a byte that is 0 or 1. As a type of its own, it does not match uint8 in a
// call. It is not Go's bool, because a program may hand over other bytes.
type boolean uint8

func booleans() elements[boolean] {
	and, or := collective.And[boolean](), collective.Or[boolean]()
	return elements[boolean]{
		C.PLEACH_SUM: or, C.PLEACH_MAX: or, C.PLEACH_OR: or,
		C.PLEACH_PROD: and, C.PLEACH_MIN: and, C.PLEACH_AND: and,
	}
}

func numbers[T collective.Number]() elements[T] {
	return elements[T]{
		C.PLEACH_SUM: collective.Sum[T](), C.PLEACH_PROD: collective.Prod[T](),
		C.PLEACH_MIN: collective.Min[T](), C.PLEACH_MAX: collective.Max[T](),
	}
}

func integers[T collective.Integer]() elements[T] {
	e := elements[T]{C.PLEACH_AND: collective.And[T](), C.PLEACH_OR: collective.Or[T]()}
	for op, o := range numbers[T]() {
		e[op] = o
	}
	return e
}

// complexes have no order.
func complexes[T complex64 | complex128]() elements[T] {
	return elements[T]{
		C.PLEACH_SUM:  collective.NewOperator("sum", func(a, b T) T { return a + b }),
		C.PLEACH_PROD: collective.NewOperator("prod", func(a, b T) T { return a * b }),
	}
}

// halves combines numbers of half precision in single precision, and rounds to the nearest.
func halves[T collective.Half]() elements[T] {
	e := elements[T]{}
	for op, o := range numbers[float32]() {
		e[op] = collective.Rounded[T](o)
	}
	return e
}
