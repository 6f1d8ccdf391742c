package samplesort

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Format is the format of records.
type Format int

// The formats.
const (
	// Records are of 100 bytes, sorted by the first ten, as in the sort benchmark
	// (sortbenchmark.org; its generator is gensort).
	Records Format = iota
	// Lines end with a newline, and are sorted by their bytes, or those of a key ([Order]).
	Lines
)

// String returns records or lines.
func (f Format) String() string {
	if f == Lines {
		return "lines"
	}
	return "records"
}

const (
	recordSize = 100
	keySize    = 10
)

// record returns the first record of b, with its newline.
func (f Format) record(b []byte) []byte {
	if f == Records {
		return b[:recordSize]
	}
	return b[:bytes.IndexByte(b, '\n')+1]
}

// check returns an error unless b is a sequence of records.
func (f Format) check(b []byte) error {
	switch {
	case f == Records && len(b)%recordSize != 0:
		return fmt.Errorf("%d bytes are no whole number of records of %d bytes", len(b), recordSize)
	case f == Lines && len(b) > 0 && b[len(b)-1] != '\n':
		return fmt.Errorf("the last line has no newline")
	}
	return nil
}

// prefix returns the first eight bytes of a key as a number. Keys whose prefixes differ are
// in the order of the prefixes.
func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}
