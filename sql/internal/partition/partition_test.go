package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"pgregory.net/rapid"
)

var everyKind = arrow.NewSchema([]arrow.Field{
	{Name: "key", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "long", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "small", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
	{Name: "truth", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "money", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}, Nullable: true},
	{Name: "blob", Type: arrow.BinaryTypes.Binary, Nullable: true},
}, nil)

// rowsOf returns batches of rows. A value of a row is missing if its bit in nulls is set.
func rowsOf(t *rapid.T, keys []int32, nulls []uint8, batch int) array.RecordReader {
	var batches []arrow.RecordBatch
	for first := 0; first < len(keys); first += batch {
		b := array.NewRecordBuilder(allocator, everyKind)
		for i := first; i < min(first+batch, len(keys)); i++ {
			k := keys[i]
			b.Field(0).(*array.Int32Builder).Append(k)
			b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", int(uint32(k)%5)))
			b.Field(2).(*array.Int64Builder).Append(int64(k) << 20)
			b.Field(3).(*array.Int16Builder).Append(int16(k))
			b.Field(4).(*array.BooleanBuilder).Append(k%3 == 0)
			b.Field(5).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(k)))
			b.Field(6).(*array.BinaryBuilder).Append(fmt.Append(nil, k))
		}
		record := b.NewRecordBatch()
		batches = append(batches, withNulls(record, nulls[first:min(first+batch, len(nulls))]))
	}
	r, err := array.NewRecordReader(everyKind, batches)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// withNulls sets values to null by their bits.
func withNulls(record arrow.RecordBatch, nulls []uint8) arrow.RecordBatch {
	columns := make([]arrow.Array, record.NumCols())
	for c := range columns {
		b := array.NewBuilder(allocator, record.Column(c).DataType())
		for row, bits := range nulls {
			if bits>>c&1 == 1 {
				b.AppendNull()
			} else if err := b.AppendValueFromString(record.Column(c).ValueStr(row)); err != nil {
				panic(err)
			}
		}
		columns[c] = b.NewArray()
	}
	return array.NewRecordBatch(everyKind, columns, record.NumRows())
}

// texts returns all rows of a reader as text.
func textsOf(t *rapid.T, r array.RecordReader) (all []string) {
	for r.Next() {
		b := r.RecordBatch()
		for row := range int(b.NumRows()) {
			var values []string
			for c := range int(b.NumCols()) {
				values = append(values, b.Column(c).ValueStr(row))
			}
			all = append(all, strings.Join(values, "|"))
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return all
}

// The parts have all rows, each in the part of its key and in the order of before.
func TestScatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Int32Range(-30, 30), 1, 200).Draw(t, "keys")
		nulls := rapid.SliceOfN(rapid.SampledFrom([]uint8{0, 0, 0, 1, 0x7f, 0x12}), len(keys), len(keys)).Draw(t, "nulls")
		batch, parts := rapid.IntRange(1, 70).Draw(t, "batch"), rapid.IntRange(1, 5).Draw(t, "parts")
		var route Router
		var err error
		if rapid.Bool().Draw(t, "hash") {
			route, err = ByHash(everyKind, "key", parts)
		} else {
			sampled, sampleErr := Sample(rowsOf(t, keys, nulls, batch), "text")
			limits, limitsErr := Limits([][]byte{sampled}, parts)
			if sampleErr != nil || limitsErr != nil || len(limits) > parts-1 {
				t.Fatal(limits, sampleErr, limitsErr)
			}
			route, err = ByRange(everyKind, "text", limits)
		}
		if err != nil {
			t.Fatal(err)
		}
		// What each part should have, row by row.
		want := make([][]string, parts)
		for rows := rowsOf(t, keys, nulls, batch); rows.Next(); {
			b := rows.RecordBatch()
			to := make([]int32, b.NumRows())
			route(b, to)
			one, err := array.NewRecordReader(everyKind, []arrow.RecordBatch{b})
			if err != nil {
				t.Fatal(err)
			}
			for row, text := range textsOf(t, one) {
				want[to[row]] = append(want[to[row]], text)
			}
		}
		encoded, err := Scatter(rowsOf(t, keys, nulls, batch), parts, route)
		if err != nil {
			t.Fatal(err)
		}
		for part := range parts {
			decoded, err := Decode(encoded[part : part+1])
			if err != nil {
				t.Fatal(err)
			}
			if got := textsOf(t, decoded); !slices.Equal(got, want[part]) {
				t.Fatalf("part %d is\n%v\nwant\n%v", part, got, want[part])
			}
		}
	})
}

// The hash is part of what processes of different versions have in common.
func TestHashIsFixed(t *testing.T) {
	b := array.NewRecordBuilder(allocator, everyKind)
	b.Field(0).(*array.Int32Builder).Append(42)
	b.Field(2).(*array.Int64Builder).Append(42)
	b.Field(1).(*array.StringBuilder).Append("pleach")
	for _, c := range []struct {
		column int
		want   uint64
	}{{0, 0xbdd732262feb6e95}, {2, 0xbdd732262feb6e95}, {1, 0x464891fb36ade7d6}} {
		if got := keysOf(b.Field(c.column).NewArray()).hash(0); got != c.want {
			t.Errorf("hash of column %d is %#x, want %#x", c.column, got, c.want)
		}
	}
}

// Limits are ordered as the keys are, and parts are of similar sizes.
func TestRangesAreOfSimilarSizes(t *testing.T) {
	kind := arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.PrimitiveTypes.Int64}}, nil)
	rows := func(n int) array.RecordReader {
		b := array.NewRecordBuilder(allocator, kind)
		for i := range n {
			b.Field(0).(*array.Int64Builder).Append(int64(i*7919%n) - int64(n/2))
		}
		r, err := array.NewRecordReader(kind, []arrow.RecordBatch{b.NewRecordBatch()})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const n, parts = 50_000, 7
	var samples [][]byte
	for _, size := range []int{n, n / 20} { // The keys of the second task are in the middle.
		s, err := Sample(rows(size), "key")
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, s)
	}
	limits, err := Limits(samples, parts)
	if err != nil {
		t.Fatal(err)
	}
	route, err := ByRange(kind, "key", limits)
	if err != nil {
		t.Fatal(err)
	}
	counts, highest := make([]int, parts), make([]int64, parts)
	for _, size := range []int{n, n / 20} {
		for r := rows(size); r.Next(); {
			b := r.RecordBatch()
			to := make([]int32, b.NumRows())
			route(b, to)
			for row, part := range to {
				counts[part]++
				highest[part] = max(highest[part], b.Column(0).(*array.Int64).Value(row)+n)
			}
		}
	}
	if !slices.IsSorted(highest) {
		t.Errorf("the highest keys of parts are %v", highest)
	}
	for _, c := range counts {
		if mean := (n + n/20) / parts; c < mean*8/10 || c > mean*12/10 {
			t.Errorf("parts have %v rows, the mean is %d", counts, mean)
			break
		}
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	for _, column := range []string{"money", "truth", "none"} {
		if _, err := ByHash(everyKind, column, 2); err == nil {
			t.Errorf("column %s is a key", column)
		}
	}
}
