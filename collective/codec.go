package collective

import (
	"bytes"
	"encoding/gob"
	"fmt"
)

// Codec turns elements into bytes and back. Numbers need none: they travel as
// they lie in memory. Everything else goes through package encoding/gob unless
// a call is given a codec of its own by [WithCodec].
type Codec[T any] interface {
	// Append appends elements to bytes.
	Append(dst []byte, elements []T) ([]byte, error)
	// Decode returns all the elements in bytes, and keeps none of the bytes.
	Decode(b []byte) ([]T, error)
}

// memory is the codec of numbers.
type memory[T any] struct{}

func (memory[T]) Append(dst []byte, elements []T) ([]byte, error) {
	return append(dst, bytesOf(elements)...), nil
}

func (memory[T]) Decode(b []byte) ([]T, error) {
	s, ok := numbersIn[T](b)
	if !ok {
		return nil, fmt.Errorf("%w: %d bytes are no whole number of elements", ErrMessage, len(b))
	}
	return s, nil
}

// gobs is the codec of everything that has none of its own.
type gobs[T any] struct{}

func (gobs[T]) Append(dst []byte, elements []T) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	err := gob.NewEncoder(b).Encode(elements)
	return b.Bytes(), err
}

func (gobs[T]) Decode(b []byte) (elements []T, err error) {
	err = gob.NewDecoder(bytes.NewReader(b)).Decode(&elements)
	return elements, err
}
