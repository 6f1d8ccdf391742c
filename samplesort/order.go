package samplesort

import (
	"bytes"
	"errors"
)

// Order is how lines are sorted. The zero value is by all of their bytes.
type Order struct {
	// Field is the first field of the key, counted from 1. If zero, the key is the line.
	Field int `json:"field,omitempty"`
	// Last is the last field of the key. If zero, the key goes to the end of the line.
	Last int `json:"last,omitempty"`
	// Separator is the byte between fields. If zero, fields are separated by blanks (spaces
	// and tabs), and blanks before the first one are skipped.
	Separator byte `json:"separator,omitempty"`
	// Reverse sorts from the greatest key to the least. Lines with the same key stay in the
	// order of the input.
	Reverse bool `json:"reverse,omitempty"`
	// Unique keeps the first of the lines that have the same key.
	Unique bool `json:"unique,omitempty"`
}

// check returns an error for an order that makes no sense.
func (o *Order) check(f Format) error {
	switch {
	case f == Records && *o != Order{}:
		return errors.New("samplesort: records are sorted by their first ten bytes: an order is for lines")
	case o.Field < 0 || o.Last < 0 || o.Last > 0 && o.Last < o.Field || o.Field == 0 && (o.Last > 0 || o.Separator != 0):
		return errors.New("samplesort: a key has a first field, counted from 1, and a last one that is not before it")
	}
	return nil
}

// rules are how records are read and compared.
type rules struct {
	Format
	Order
}

// key returns the key of a record.
func (r *rules) key(record []byte) []byte {
	if r.Format == Records {
		return record[:keySize]
	}
	line := record[:len(record)-1]
	if r.Field == 0 {
		return line
	}
	key := line[r.skip(line, r.Field-1):]
	if r.Last == 0 {
		return key
	}
	end := r.skip(key, r.Last-r.Field)
	return key[:end+r.field(key[end:])]
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
	end := bytes.IndexAny(b, " \t")
	if r.Separator != 0 {
		end = bytes.IndexByte(b, r.Separator)
	}
	if end < 0 {
		return len(b)
	}
	return end
}

// blanks returns how many blanks are before a field.
func (r *rules) blanks(b []byte) int {
	if r.Separator != 0 {
		return 0
	}
	return len(b) - len(bytes.TrimLeft(b, " \t"))
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
