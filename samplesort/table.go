package samplesort

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
)

// Records stay where they are while they are sorted: what moves are entries of 16 bytes.
// Most comparisons need no more than the prefix in the entry.

// table is a sequence of records in several pieces of memory.
type table struct {
	rules
	pieces  [][]byte
	spans   []span  // of lines that have a key; nil: the key is cheap to find
	keys    []byte  // of lines whose keys are no parts of them
	entries []entry // in the order of pieces, or sorted
	dropped Summary // records whose entries were removed
}

// span is where a line begins in its piece, and where its key is in the line, or in table.keys. Keys
// are looked for once: a sort compares each of them many times.
type span struct{ offset, key, end int }

// entry is a record: the prefix of its key, and its position in the pieces. Positions
// ascend in the order of the pieces.
type entry struct {
	prefix   uint64
	position position
}

// position is a piece and an offset in it, or the number of a span.
type position uint64

// offsetBits bounds pieces to 16 TiB.
const offsetBits = 44

// newTable returns the records in some pieces of memory.
func newTable(r rules, pieces ...[]byte) (*table, error) {
	t := &table{rules: r, pieces: pieces}
	f := r.Format
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
	encodes := r.encodes()
	if encodes || len(r.Keys) > 0 {
		t.spans = make([]span, 0, count)
	}
	for i, b := range pieces {
		for offset := 0; offset < len(b); {
			record := f.record(b[offset:])
			at := offset
			var key []byte
			if encodes {
				at = len(t.spans)
				first := len(t.keys)
				t.keys = r.appendKey(t.keys, record)
				key = t.keys[first:]
				t.spans = append(t.spans, span{offset, first, len(t.keys)})
			} else {
				first, end := r.find(record)
				key = record[first:end]
				if t.spans != nil {
					at = len(t.spans)
					t.spans = append(t.spans, span{offset, first, end})
				}
			}
			t.entries = append(t.entries, entry{r.prefix(key), position(i)<<offsetBits | position(at)})
			offset += len(record)
		}
	}
	return t, nil
}

// place returns the piece of an entry's record, and where the record begins in it.
func (t *table) place(e entry) (piece []byte, offset int) {
	offset = int(e.position & (1<<offsetBits - 1))
	if t.spans != nil {
		offset = t.spans[offset].offset
	}
	return t.pieces[e.position>>offsetBits], offset
}

// record returns the record of an entry.
func (t *table) record(e entry) []byte {
	piece, offset := t.place(e)
	return t.Format.record(piece[offset:])
}

// key returns the key of an entry's record.
func (t *table) key(e entry) []byte {
	if t.spans == nil {
		return t.rules.key(t.record(e))
	}
	s := &t.spans[e.position&(1<<offsetBits-1)]
	if t.keys != nil {
		return t.keys[s.key:s.end]
	}
	return t.pieces[e.position>>offsetBits][s.offset+s.key : s.offset+s.end]
}

// touch reads from the memory of some records, so that it is in the cache. It returns what it
// has read, so that it has to.
//
//go:noinline
func (t *table) touch(some []entry) (read byte) {
	for _, e := range some {
		piece, offset := t.place(e)
		read ^= piece[offset] ^ piece[min(offset+recordSize, len(piece))-1]
	}
	return read
}

// sort sorts the entries by key. Those with the same key stay in order.
func (t *table) sort() {
	sorted := sortByPrefix(t.entries) // by these bits
	for first := 0; first < len(t.entries); {
		end := first + 1
		for end < len(t.entries) && (t.entries[end].prefix^t.entries[first].prefix)&sorted == 0 {
			end++
		}
		if end > first+1 {
			slices.SortFunc(t.entries[first:end], t.compare)
		}
		first = end
	}
}

// compare compares records by their key, and those with the same key by their position.
func (t *table) compare(a, b entry) int {
	if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
		return c
	}
	if c := t.compareKeys(t.key(a), t.key(b)); c != 0 {
		return c
	}
	return cmp.Compare(a.position, b.position)
}

// An LSD radix sort moves all entries once for each digit. Three digits of 11 bits tell most
// of up to some million records apart, and their counts fit into the cache.
const (
	digitBits = 11
	digits    = 3
	// fewEntries are sorted faster by comparisons.
	fewEntries = 1000
)

// sortByPrefix sorts entries by the highest bits in which their prefixes differ. It is
// stable. It returns a mask of these bits and all above.
func sortByPrefix(entries []entry) (mask uint64) {
	if len(entries) < fewEntries {
		return 0 // which leaves all to comparisons
	}
	var differ uint64
	for _, e := range entries {
		differ |= e.prefix ^ entries[0].prefix
	}
	high := bits.Len64(differ)
	low := max(high-digits*digitBits, 0)
	from, to := entries, make([]entry, len(entries))
	for shift := low; shift < high; shift += digitBits {
		moveByDigit(from, to, shift)
		from, to = to, from
	}
	if &from[0] != &entries[0] {
		copy(entries, from)
	}
	return ^uint64(0) << low
}

// moveByDigit sorts entries by one digit, from one place to another. It is stable.
func moveByDigit(from, to []entry, shift int) {
	const values = 1 << digitBits
	var next [values]int
	for _, e := range from {
		next[e.prefix>>shift%values]++
	}
	sum := 0
	for i, n := range next {
		next[i], sum = sum, sum+n
	}
	for _, e := range from {
		at := &next[e.prefix>>shift%values]
		to[*at] = e
		*at++
	}
}
