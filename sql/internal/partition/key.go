package partition

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Router says to which part each row of a batch belongs. It fills to.
type Router func(batch arrow.RecordBatch, to []int32)

// ByHash routes rows by the hash of a column.
func ByHash(schema *arrow.Schema, column string, parts int) (Router, error) {
	i, err := keyColumn(schema, column)
	if err != nil {
		return nil, err
	}
	return func(batch arrow.RecordBatch, to []int32) {
		keys := keysOf(batch.Column(i))
		for row := range to {
			high, _ := bits.Mul64(keys.hash(row), uint64(parts))
			to[row] = int32(high)
		}
	}, nil
}

// ByRange routes rows by a column: those below the first limit to part 0, those from it to
// below the second to part 1, and so on.
func ByRange(schema *arrow.Schema, column string, limits [][]byte) (Router, error) {
	i, err := keyColumn(schema, column)
	if err != nil {
		return nil, err
	}
	return func(batch arrow.RecordBatch, to []int32) {
		keys := keysOf(batch.Column(i))
		var key []byte
		for row := range to {
			key = keys.appendOrdered(key[:0], row)
			to[row] = int32(sort.Search(len(limits), func(l int) bool { return bytes.Compare(key, limits[l]) < 0 }))
		}
	}, nil
}

// keyColumn returns the index of a column that can be a key.
func keyColumn(schema *arrow.Schema, column string) (int, error) {
	found := schema.FieldIndices(column)
	if len(found) != 1 {
		return 0, fmt.Errorf("partition: %d columns are named %s, want one of %v", len(found), column, schema)
	}
	kind := schema.Field(found[0]).Type
	empty := array.MakeArrayOfNull(allocator, kind, 0)
	defer empty.Release()
	if keysOf(empty) == nil {
		return 0, fmt.Errorf("partition: column %s is of type %v: a key is an integer, a date, a time or a text",
			column, kind)
	}
	return found[0], nil
}

// keys are the values of a key column. A row without a value has a key of its own, below
// all others.
type keys interface {
	hash(row int) uint64
	// appendOrdered appends bytes that are ordered as the keys are.
	appendOrdered(b []byte, row int) []byte
}

// keysOf returns the keys of a column, or nil if it can be none.
func keysOf(column arrow.Array) keys {
	switch c := column.(type) {
	case *array.Int8:
		return numbers[int8]{c, c.Values()}
	case *array.Int16:
		return numbers[int16]{c, c.Values()}
	case *array.Int32:
		return numbers[int32]{c, c.Values()}
	case *array.Int64:
		return numbers[int64]{c, c.Values()}
	case *array.Uint8:
		return numbers[uint8]{c, c.Values()}
	case *array.Uint16:
		return numbers[uint16]{c, c.Values()}
	case *array.Uint32:
		return numbers[uint32]{c, c.Values()}
	case *array.Date32:
		return numbers[arrow.Date32]{c, c.Values()}
	case *array.Timestamp:
		return numbers[arrow.Timestamp]{c, c.Values()}
	case *array.String:
		return texts{c}
	}
	return nil
}

// numbers are keys whose values fit into an int64. Keys of different widths are equal if
// their numbers are.
type numbers[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32] struct {
	arrow.Array
	values []T
}

func (n numbers[T]) hash(row int) uint64 {
	if n.IsNull(row) {
		return 0
	}
	return mix(uint64(int64(n.values[row])))
}

func (n numbers[T]) appendOrdered(b []byte, row int) []byte {
	if n.IsNull(row) {
		return b
	}
	return binary.BigEndian.AppendUint64(b, uint64(int64(n.values[row]))^1<<63)
}

// texts are strings, ordered by their bytes.
type texts struct{ *array.String }

func (t texts) hash(row int) uint64 {
	if t.IsNull(row) {
		return 0
	}
	// FNV-1a (Fowler, Noll & Vo).
	h := uint64(14695981039346656037)
	for _, c := range []byte(t.Value(row)) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix(h)
}

func (t texts) appendOrdered(b []byte, row int) []byte {
	if t.IsNull(row) {
		return b
	}
	return append(append(b, 1), t.Value(row)...) // An empty text is above no text.
}

// mix is the finalizer of SplitMix64 (Steele, Lea & Flood 2014): all bits of x change all
// bits of the hash. It is a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
