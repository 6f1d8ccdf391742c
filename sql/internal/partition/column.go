package partition

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// allocator allocates what Arrow decodes.
var allocator = memory.DefaultAllocator

// column collects the values of some rows.
type column interface {
	// gather appends the values of rows of an array.
	gather(from arrow.Array, rows []int32)
	// data returns what was collected as an array's data.
	data(kind arrow.DataType, length int) arrow.ArrayData
}

func newColumn(kind arrow.DataType) (column, error) {
	switch k := kind.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		return &variableColumn{offsets: make([]byte, 4)}, nil
	case *arrow.BooleanType:
		return &bitColumn{}, nil
	case arrow.FixedWidthDataType:
		if kind.ID() != arrow.DICTIONARY && k.BitWidth()%8 == 0 {
			return &fixedColumn{width: k.BitWidth() / 8}, nil
		}
	}
	return nil, fmt.Errorf("type %v cannot be exchanged: cast it to a number, a date, a time, a text or a blob", kind)
}

// bitmap is a sequence of bits. If set is true and bits is nil, all of them are set.
type bitmap struct {
	bits   []byte
	length int
}

func (b *bitmap) append(set bool) {
	if b.length%8 == 0 {
		b.bits = append(b.bits, 0)
	}
	if set {
		b.bits[b.length/8] |= 1 << (b.length % 8)
	}
	b.length++
}

// validity says which values are there. It has no bits as long as all are.
type validity struct {
	bitmap
	nulls int
}

func (v *validity) gather(from arrow.Array, rows []int32) {
	if from.NullN() == 0 && v.nulls == 0 {
		v.length += len(rows)
		return
	}
	if v.nulls == 0 { // the first ones
		v.bits = slices.Repeat([]byte{0xff}, int(bitutil.BytesForBits(int64(v.length))))
		if used := v.length % 8; used > 0 {
			v.bits[len(v.bits)-1] = 1<<used - 1
		}
	}
	for _, row := range rows {
		null := from.IsNull(int(row))
		if null {
			v.nulls++
		}
		v.append(!null)
	}
}

func (v *validity) buffer() *memory.Buffer {
	if v.nulls == 0 {
		return nil
	}
	return memory.NewBufferBytes(v.bits)
}

// fixedColumn has values of one width in bytes.
type fixedColumn struct {
	validity
	width  int
	values []byte
}

func (c *fixedColumn) gather(from arrow.Array, rows []int32) {
	c.validity.gather(from, rows)
	had, w := len(c.values), c.width
	c.values = slices.Grow(c.values, len(rows)*w)[:had+len(rows)*w]
	to := c.values[had:]
	d := from.Data()
	values := d.Buffers()[1].Bytes()[d.Offset()*w:]
	switch w {
	case 4:
		for i, row := range rows {
			binary.LittleEndian.PutUint32(to[4*i:], binary.LittleEndian.Uint32(values[4*row:]))
		}
	case 8:
		for i, row := range rows {
			binary.LittleEndian.PutUint64(to[8*i:], binary.LittleEndian.Uint64(values[8*row:]))
		}
	default:
		for i, row := range rows {
			copy(to[i*w:(i+1)*w], values[int(row)*w:])
		}
	}
}

func (c *fixedColumn) data(kind arrow.DataType, length int) arrow.ArrayData {
	return array.NewData(kind, length, []*memory.Buffer{c.buffer(), memory.NewBufferBytes(c.values)}, nil, c.nulls, 0)
}

// bitColumn has truth values.
type bitColumn struct {
	validity
	values bitmap
}

func (c *bitColumn) gather(from arrow.Array, rows []int32) {
	c.validity.gather(from, rows)
	d := from.Data()
	bits := d.Buffers()[1].Bytes()
	for _, row := range rows {
		c.values.append(bitutil.BitIsSet(bits, d.Offset()+int(row)))
	}
}

func (c *bitColumn) data(kind arrow.DataType, length int) arrow.ArrayData {
	return array.NewData(kind, length, []*memory.Buffer{c.buffer(), memory.NewBufferBytes(c.values.bits)}, nil, c.nulls, 0)
}

// variableColumn has texts or blobs, and where each ends.
type variableColumn struct {
	validity
	offsets, values []byte
}

func (c *variableColumn) gather(from arrow.Array, rows []int32) {
	c.validity.gather(from, rows)
	d := from.Data()
	offsets := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset():]
	var values []byte
	if b := d.Buffers()[2]; b != nil { // All texts may be empty.
		values = b.Bytes()
	}
	for _, row := range rows {
		c.values = append(c.values, values[offsets[row]:offsets[row+1]]...)
		c.offsets = binary.LittleEndian.AppendUint32(c.offsets, uint32(len(c.values)))
	}
}

func (c *variableColumn) data(kind arrow.DataType, length int) arrow.ArrayData {
	buffers := []*memory.Buffer{c.buffer(), memory.NewBufferBytes(c.offsets), memory.NewBufferBytes(c.values)}
	return array.NewData(kind, length, buffers, nil, c.nulls, 0)
}
