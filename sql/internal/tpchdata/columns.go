package tpchdata

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pleach-go/pleach/lab/tpch"
)

// Columns of package tpch become Arrow columns as they lie in memory.

// table is an Arrow record batch to be.
type table struct {
	fields []arrow.Field
	arrays []arrow.Array
}

func (t *table) add(name string, a arrow.Array) {
	t.fields = append(t.fields, arrow.Field{Name: name, Type: a.DataType()})
	t.arrays = append(t.arrays, a)
}

// rows returns a reader of the table.
func (t *table) rows() (array.RecordReader, error) {
	schema := arrow.NewSchema(t.fields, nil)
	batch := array.NewRecordBatch(schema, t.arrays, int64(t.arrays[0].Len()))
	return array.NewRecordReader(schema, []arrow.RecordBatch{batch})
}

// bytesOf returns the memory of numbers.
func bytesOf[T ~int32 | ~int64 | ~uint8](values []T) *memory.Buffer {
	var one T
	return memory.NewBufferBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))),
		len(values)*int(unsafe.Sizeof(one))))
}

// numbers returns a column of numbers that lie in memory as values of an Arrow type do.
func numbers[T ~int32 | ~int64 | ~uint8](kind arrow.DataType, values []T) arrow.Array {
	return array.MakeFromData(array.NewData(kind, len(values), []*memory.Buffer{nil, bytesOf(values)}, nil, 0, 0))
}

func int32s(values []int32) arrow.Array    { return numbers(arrow.PrimitiveTypes.Int32, values) }
func int64s(values []int64) arrow.Array    { return numbers(arrow.PrimitiveTypes.Int64, values) }
func dates(values []tpch.Date) arrow.Array { return numbers(arrow.FixedWidthTypes.Date32, values) }

// characters returns a column of texts of one letter.
func characters(values []byte) arrow.Array {
	offsets := make([]int32, len(values)+1)
	for i := range offsets {
		offsets[i] = int32(i)
	}
	return array.MakeFromData(array.NewData(arrow.BinaryTypes.String, len(values),
		[]*memory.Buffer{nil, bytesOf(offsets), bytesOf(values)}, nil, 0, 0))
}

// textColumn returns a column of texts.
func textColumn(values []string) arrow.Array {
	builder := array.NewStringBuilder(memory.DefaultAllocator)
	builder.AppendValues(values, nil)
	return builder.NewArray()
}

// words returns a column of texts that are drawn from so many.
func words[T interface {
	~uint8
	String() string
}](values []T, different int,
) arrow.Array {
	builder := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range different {
		builder.Append(T(i).String())
	}
	kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
	return array.NewDictionaryArray(kind, numbers(arrow.PrimitiveTypes.Uint8, values), builder.NewArray())
}
