package samplesort

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// All steps, without processes: the buckets one after the other are the sorted input, and
// equal keys are in the order of the input.
func TestStepsSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRules(t)
		tasks := rapid.IntRange(1, 9).Draw(t, "tasks")
		shares := make([][]byte, tasks)
		for task := range shares {
			shares[task] = drawRecords(t, r.Format)
		}
		var samples []splitter
		tables := make([]*table, tasks)
		for task, b := range shares {
			tables[task] = tableOf(t, r, b)
			some, err := r.decodeSample(sample(tables[task], task, 20), task)
			if err != nil {
				t.Fatal(err)
			}
			samples = append(samples, some...)
		}
		limits := r.chooseSplitters(samples, tasks)
		buckets := make([][][]byte, tasks)
		for task, table := range tables {
			for bucket, part := range partition(limits, table, task, tasks) {
				buckets[bucket] = append(buckets[bucket], part)
				if again := pick(limits, table, task, bucket); !bytes.Equal(again, part) {
					t.Fatalf("the records of task %d in bucket %d are %q, picked %q", task, bucket, part, again)
				}
			}
		}
		var got []byte
		for _, pieces := range buckets {
			b := tableOf(t, r, pieces...)
			b.sort()
			if r.Unique {
				b.dropDuplicates()
			}
			for _, e := range b.entries {
				got = append(got, b.record(e)...)
			}
		}
		if want := sorted(r, slices.Concat(shares...)); !bytes.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func drawRules(t *rapid.T) rules {
	r := rules{Format: rapid.SampledFrom([]Format{Records, Lines}).Draw(t, "format")}
	if r.Format == Lines {
		r.Order = Order{
			Numeric: rapid.Bool().Draw(t, "numeric"), Reverse: rapid.Bool().Draw(t, "reverse"),
			Unique: rapid.Bool().Draw(t, "unique"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "keys") {
			r.Keys = append(r.Keys, Key{Field: rapid.IntRange(1, 2).Draw(t, "field"), Reverse: rapid.Bool().Draw(t, "reverse")})
		}
		if len(r.Keys) > 0 {
			r.Separator = rapid.SampledFrom([]byte{0, 'a'}).Draw(t, "separator")
		}
	}
	return r
}

// Keys are fields of lines.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		order     Order
		line, key string
	}{
		{Order{}, "a b c", "a b c"},
		{Order{Keys: []Key{{Field: 1}}}, " a b c", "a b c"},
		{Order{Keys: []Key{{Field: 2}}}, "a  b c", "b c"},
		{Order{Keys: []Key{{Field: 2, Last: 2}}}, "a \tb c", "b"},
		{Order{Keys: []Key{{Field: 1, Last: 2}}}, "a  b c", "a  b"},
		{Order{Keys: []Key{{Field: 4}}}, "a b c", ""},
		{Order{Keys: []Key{{Field: 2, Last: 5}}}, "a b", "b"},
		{Order{Keys: []Key{{Field: 2}}, Separator: ','}, "a,b,c", "b,c"},
		{Order{Keys: []Key{{Field: 2, Last: 2}}, Separator: ','}, "a,,c", ""},
		{Order{Keys: []Key{{Field: 3, Last: 3}}, Separator: ','}, "a,b, c ", " c "},
		{Order{Keys: []Key{{Field: 2, Last: 2}}}, "a", ""},
	} {
		r := rules{Lines, c.order}
		if got := r.key([]byte(c.line + "\n")); string(got) != c.key {
			t.Errorf("%+v: the key of %q is %q, want %q", c.order, c.line, got, c.key)
		}
	}
}

// Many entries are sorted by radix, few by comparisons, and both by all bits of the prefix in
// the end.
func TestSortEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mask := rapid.SampledFrom([]uint64{0, 1, 0xff00, 0xffff_0000_0000_00ff, 1<<64 - 1}).Draw(t, "mask")
		n := rapid.SampledFrom([]int{0, 1, 2, fewEntries - 1, fewEntries, 3 * fewEntries}).Draw(t, "n")
		x := rapid.Uint64().Draw(t, "seed")
		records := make([]byte, n*recordSize)
		for i := range n {
			x = x*6364136223846793005 + 1442695040888963407
			binary.BigEndian.PutUint64(records[i*recordSize:], x&mask)
		}
		table := tableOf(t, rules{}, records)
		table.sort()
		for i := 1; i < n; i++ {
			a, b := table.entries[i-1], table.entries[i]
			if a.prefix > b.prefix || a.prefix == b.prefix && a.position >= b.position {
				t.Fatalf("%v is before %v", a, b)
			}
		}
	})
}

// An input with one key is spread over the buckets, too, also if one task has all of it.
func TestEqualKeysAreSpread(t *testing.T) {
	const tasks, records = 8, 2000
	table := tableOf(t, rules{}, bytes.Repeat([]byte{'x'}, tasks*records*recordSize))
	samples, err := table.decodeSample(sample(table, 0, 1000), 0)
	if err != nil {
		t.Fatal(err)
	}
	sizes := make([]int, tasks)
	for bucket, part := range partition(table.chooseSplitters(samples, tasks), table, 0, tasks) {
		sizes[bucket] = len(part) / recordSize
	}
	if largest := slices.Max(sizes); largest > records*5/4 {
		t.Errorf("the buckets have %v records, want about %d each", sizes, records)
	}
}

func TestMalformedSamples(t *testing.T) {
	r := rules{Format: Lines}
	good := sample(tableOf(t, r, []byte("some line\n")), 0, 1)
	for n := 1; n < len(good); n++ {
		if _, err := r.decodeSample(good[:n], 0); err == nil {
			t.Errorf("%q is accepted", good[:n])
		}
	}
}

func TestMalformedRecords(t *testing.T) {
	for format, text := range map[Format]string{Records: "no record", Lines: "no newline"} {
		if _, err := newTable(rules{Format: format}, []byte(text)); err == nil {
			t.Errorf("%q are %v", text, format)
		}
	}
}

func BenchmarkSort(b *testing.B) {
	const records = 250_000
	data, err := Generate(records).Read(b.Context(), Records, 0, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		tableOf(b, rules{}, data).sort()
	}
}

// drawRecords draws records of few different keys, so that many are equal. What follows the
// key differs.
func drawRecords(t *rapid.T, f Format) (b []byte) {
	common := rapid.SampledFrom([]string{"", "common: "}).Draw(t, "common")
	for _, word := range rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00\xff")), 0, 2, 4), 0, 100).Draw(t,
		"words") {
		word = common + word
		if f == Lines {
			b = append(append(b, word...), '\n')
			continue
		}
		record := bytes.Repeat([]byte{'.'}, recordSize)
		copy(record, word)
		binary.BigEndian.PutUint64(record[50:], rapid.Uint64().Draw(t, "rest"))
		b = append(b, record...)
	}
	return b
}

// sorted sorts records in the obvious way.
func sorted(by rules, b []byte) []byte {
	var records [][]byte
	for len(b) > 0 {
		r := by.record(b)
		records, b = append(records, r), b[len(r):]
	}
	slices.SortStableFunc(records, func(a, b []byte) int { return by.compareKeys(by.key(a), by.key(b)) })
	if by.Unique {
		records = slices.CompactFunc(records, func(a, b []byte) bool { return bytes.Equal(by.key(a), by.key(b)) })
	}
	return slices.Concat(records...)
}

func tableOf(t interface{ Fatal(...any) }, r rules, pieces ...[]byte) *table {
	table, err := newTable(r, pieces...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
