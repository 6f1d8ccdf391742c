package samplesort

import (
	"bytes"
	"cmp"
	"slices"
)

// Records stay where they are while they are sorted: what moves are entries of 16 bytes.
// Most comparisons need no more than the prefix in the entry.

// table is a sequence of records in several pieces of memory.
type table struct {
	format  Format
	pieces  [][]byte
	entries []entry // in the order of pieces, or sorted
}

// entry is a record: the prefix of its key, and its position in the pieces. Positions
// ascend in the order of the pieces.
type entry struct {
	prefix   uint64
	position position
}

// position is a piece and an offset in it.
type position uint64

// offsetBits bounds pieces to 16 TiB.
const offsetBits = 44

// newTable returns the records in some pieces of memory.
func newTable(f Format, pieces ...[]byte) (*table, error) {
	t := &table{format: f, pieces: pieces}
	count := 0
	for _, b := range pieces {
		if err := f.check(b); err != nil {
			return nil, err
		}
		if f == Records {
			count += len(b) / recordSize
		} else {
			count += bytes.Count(b, []byte{'\n'})
		}
	}
	t.entries = make([]entry, 0, count)
	for i, b := range pieces {
		for offset := 0; offset < len(b); {
			record := f.record(b[offset:])
			t.entries = append(t.entries, entry{prefix(f.key(record)), position(i)<<offsetBits | position(offset)})
			offset += len(record)
		}
	}
	return t, nil
}

// record returns the record of an entry.
func (t *table) record(e entry) []byte {
	piece, offset := e.position>>offsetBits, e.position&(1<<offsetBits-1)
	return t.format.record(t.pieces[piece][offset:])
}

// key returns the key of an entry's record.
func (t *table) key(e entry) []byte { return t.format.key(t.record(e)) }

// sort sorts the entries by key. Those with the same key stay in order.
func (t *table) sort() {
	sortByPrefix(t.entries)
	for first := 0; first < len(t.entries); {
		end := first + 1
		for end < len(t.entries) && t.entries[end].prefix == t.entries[first].prefix {
			end++
		}
		if end > first+1 {
			slices.SortFunc(t.entries[first:end], func(a, b entry) int {
				return cmp.Or(bytes.Compare(t.key(a), t.key(b)), cmp.Compare(a.position, b.position))
			})
		}
		first = end
	}
}

// fewEntries are sorted faster by comparisons.
const fewEntries = 1000

// sortByPrefix sorts entries by prefix, by an LSD radix sort with a pass for each byte. A
// byte that is the same in all prefixes needs no pass.
func sortByPrefix(entries []entry) {
	if len(entries) < fewEntries {
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.prefix, b.prefix) })
		return
	}
	var counts [8][256]int
	for _, e := range entries {
		for digit := range counts {
			counts[digit][byte(e.prefix>>(8*digit))]++
		}
	}
	from, to := entries, make([]entry, len(entries))
	for digit := range counts {
		next := &counts[digit]
		if next[byte(entries[0].prefix>>(8*digit))] == len(entries) {
			continue
		}
		sum := 0
		for i, n := range next {
			next[i], sum = sum, sum+n
		}
		for _, e := range from {
			value := byte(e.prefix >> (8 * digit))
			to[next[value]] = e
			next[value]++
		}
		from, to = to, from
	}
	if &from[0] != &entries[0] {
		copy(entries, from)
	}
}
