package collective

import (
	"reflect"
	"unsafe"
)

// Numbers are sent as they lie in memory, without work per element. Only this file of the
// package uses package unsafe. It is safe because the elements are numbers of a fixed size,
// without pointers and padding, and because every message's signature has the elements'
// kind, size and byte order, which the receiver compares.

// Elements that have no [reflect.Kind] of their own.
const (
	elementFloat16  = 0x20
	elementBFloat16 = 0x21
)

// elementOf returns the kind of a type's elements with the host's byte order and word size,
// or 0 if they need a [Codec].
func elementOf[T any]() byte {
	var element byte
	switch t := reflect.TypeFor[T](); {
	case t == reflect.TypeFor[Float16]():
		element = elementFloat16
	case t == reflect.TypeFor[BFloat16]():
		element = elementBFloat16
	case t.Kind() < reflect.Int || t.Kind() > reflect.Complex128 || t.Kind() == reflect.Uintptr:
		return 0
	default:
		element = byte(t.Kind())
	}
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) == 0 {
		element |= 0x80 // big endian
	}
	if unsafe.Sizeof(int(0)) == 4 {
		element |= 0x40
	}
	return element
}

// bytesOf returns the memory of a slice of numbers.
func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// numbersOn returns memory as a slice of n numbers. It must be aligned for any number, as
// memory of an allocation of its own is.
func numbersOn[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// numbersIn returns the numbers in b: in place if they are aligned, else as a copy.
func numbersIn[T any](b []byte) ([]T, bool) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	switch {
	case len(b)%size != 0:
		return nil, false
	case len(b) == 0:
		return []T{}, true
	case uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Alignof(zero) != 0:
		s := make([]T, len(b)/size)
		copy(bytesOf(s), b)
		return s, true
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size), true
}
