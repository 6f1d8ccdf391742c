package collective

import (
	"reflect"
	"unsafe"
)

// Numbers travel as they lie in memory: no work per element. This file is the only
// one that looks at memory that way. It is safe because only numbers of a fixed
// size are looked at so, which have no pointers in them and no padding; and because
// the two sides compare, in every message's signature, the elements' kind, their
// size and the order of their bytes.

// elementOf says how elements of a type travel: their kind and the host's order of
// bytes and size of words, or 0 if they need a [Codec].
func elementOf[T any]() byte {
	k := reflect.TypeFor[T]().Kind()
	if k < reflect.Int || k > reflect.Complex128 || k == reflect.Uintptr {
		return 0
	}
	element := byte(k)
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

// numbersOn returns memory as room for numbers. It must be aligned for all of them,
// as memory that was allocated for itself is.
func numbersOn[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// numbersIn returns the numbers that lie in bytes: in place if they are aligned,
// else in a copy.
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
