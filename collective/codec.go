package collective

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Codec encodes elements. Numbers need none, because they are sent as they lie in memory.
// All other elements use encoding/gob, unless a call sets a codec with [WithCodec].
type Codec[T any] interface {
	// Append appends the encoded elements to dst.
	Append(dst []byte, elements []T) ([]byte, error)
	// Decode returns all elements in b. It must not retain b.
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
		return nil, fmt.Errorf("%w: %d bytes are no whole number of elements", engine.ErrMessage, len(b))
	}
	return s, nil
}

// gobs is the codec of all other elements.
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
