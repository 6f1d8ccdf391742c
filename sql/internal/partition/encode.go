package partition

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Encode reads all rows and returns them as one part.
func Encode(rows array.RecordReader) ([]byte, error) {
	parts, err := Scatter(rows, 1, func(_ arrow.RecordBatch, to []int32) { clear(to) })
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

// encode returns an Arrow IPC stream of one batch.
func encode(schema *arrow.Schema, batch arrow.RecordBatch) ([]byte, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(schema))
	if err := errors.Join(w.Write(batch), w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decode returns the rows of several parts, in their order. The caller releases the reader.
func Decode(parts [][]byte) (array.RecordReader, error) {
	var schema *arrow.Schema
	var batches []arrow.RecordBatch
	for i, part := range parts {
		r, err := ipc.NewReader(bytes.NewReader(part), ipc.WithAllocator(allocator))
		if err != nil {
			return nil, fmt.Errorf("partition: part %d: %w", i, err)
		}
		for r.Next() {
			b := r.RecordBatch()
			b.Retain()
			batches = append(batches, b)
		}
		if err := r.Err(); err != nil {
			return nil, fmt.Errorf("partition: part %d: %w", i, err)
		}
		schema = r.Schema()
	}
	return array.NewRecordReader(schema, batches)
}
