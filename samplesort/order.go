package samplesort

import (
	"bytes"
	"errors"
	"fmt"
)

// Order is how lines are sorted. The zero value is by all of their bytes.
type Order struct {
	// Keys are the parts of a line by which lines are sorted: by the first one, lines with equal
	// first keys by the second one, and so on. If empty, the key is the line.
	Keys []Key `json:"keys,omitempty"`
	// Separator is the byte between fields. If zero, fields are separated by blanks (spaces
	// and tabs), and blanks before the first one are skipped.
	Separator byte `json:"separator,omitempty"`
	// Numeric compares the numbers at the beginning of the keys: see [Key].
	Numeric bool `json:"numeric,omitempty"`
	// Reverse sorts from the greatest key to the least. Lines with the same keys stay in the
	// order of the input.
	Reverse bool `json:"reverse,omitempty"`
	// Unique keeps the first of the lines that have the same keys.
	Unique bool `json:"unique,omitempty"`
}

// Key is a range of fields. Order.Numeric and Order.Reverse are for keys that set neither.
type Key struct {
	// Field is the first field, counted from 1.
	Field int `json:"field"`
	// Last is the last field. If zero, the key goes to the end of the line.
	Last int `json:"last,omitempty"`
	// Numeric compares numbers: blanks, a minus sign, and digits with a decimal point, of any
	// length. A key that begins with no number is 0.
	Numeric bool `json:"numeric,omitempty"`
	// Reverse sorts from the greatest to the least.
	Reverse bool `json:"reverse,omitempty"`
}

// maxKeys bounds the keys of an order.
const maxKeys = 64

// IsZero reports whether the order is by all bytes of a line.
func (o Order) IsZero() bool {
	return len(o.Keys) == 0 && o.Separator == 0 && !o.Numeric && !o.Reverse && !o.Unique
}

// check returns an error for an order that makes no sense.
func (o *Order) check(f Format) error {
	switch {
	case f == Records && !o.IsZero():
		return errors.New("samplesort: records are sorted by their first ten bytes: an order is for lines")
	case len(o.Keys) > maxKeys:
		return fmt.Errorf("samplesort: %d keys: at most %d are supported", len(o.Keys), maxKeys)
	case len(o.Keys) == 0 && o.Separator != 0:
		return errors.New("samplesort: a separator of fields is for keys")
	}
	for _, k := range o.Keys {
		if k.Field < 1 || k.Last < 0 || k.Last > 0 && k.Last < k.Field {
			return errors.New("samplesort: a key has a first field, counted from 1, and a last one that is not before it")
		}
	}
	return nil
}

// rules are how records are read and compared.
type rules struct {
	Format
	Order
}

// key returns the key of a record: keys are ordered as their bytes are.
func (r *rules) key(record []byte) []byte {
	if r.encodes() {
		return r.appendKey(nil, record)
	}
	first, end := r.find(record)
	return record[first:end]
}

// find returns where the key of a record begins and ends, if it is a part of the record.
func (r *rules) find(record []byte) (first, end int) {
	if r.Format == Records {
		return 0, keySize
	}
	return r.findKey(record[:len(record)-1], 0)
}

// findKey returns where one of the keys of a line begins and ends.
func (r *rules) findKey(line []byte, number int) (first, end int) {
	if len(r.Keys) == 0 {
		return 0, len(line)
	}
	k := r.Keys[number]
	first = r.skip(line, k.Field-1)
	if k.Last == 0 {
		return first, len(line)
	}
	key := line[first:]
	end = r.skip(key, k.Last-k.Field)
	return first, first + end + r.field(key[end:])
}

// skip returns where a field begins, after so many others.
func (r *rules) skip(line []byte, fields int) (at int) {
	at = r.blanks(line)
	for range fields {
		at += r.field(line[at:])
		if at == len(line) {
			return at
		}
		if r.Separator != 0 {
			at++
		}
		at += r.blanks(line[at:])
	}
	return at
}

// field returns the length of the field at the beginning of a text.
func (r *rules) field(b []byte) int {
	if r.Separator != 0 {
		if end := bytes.IndexByte(b, r.Separator); end >= 0 {
			return end
		}
		return len(b)
	}
	for i, c := range b {
		if isBlank(c) {
			return i
		}
	}
	return len(b)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// blanks returns how many blanks are before a field.
func (r *rules) blanks(b []byte) int {
	if r.Separator != 0 {
		return 0
	}
	for i, c := range b {
		if !isBlank(c) {
			return i
		}
	}
	return len(b)
}

// prefix returns a number for a key. Keys whose numbers differ are in the order of these.
func (r *rules) prefix(key []byte) uint64 {
	if r.Reverse {
		return ^prefix(key)
	}
	return prefix(key)
}

// compareKeys compares keys in the order.
func (r *rules) compareKeys(a, b []byte) int {
	if r.Reverse {
		return bytes.Compare(b, a)
	}
	return bytes.Compare(a, b)
}

// dropDuplicates leaves the first entry of each key in a sorted table.
func (t *table) dropDuplicates() {
	kept := t.entries[:0]
	for _, e := range t.entries {
		if n := len(kept); n > 0 && kept[n-1].prefix == e.prefix && bytes.Equal(t.key(kept[n-1]), t.key(e)) {
			t.dropped.add(t.record(e))
			continue
		}
		kept = append(kept, e)
	}
	t.entries = kept
}
