package samplesort

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Summary tells a set of records from another one, in any order.
type Summary struct {
	// Records is the number of records, and Bytes their length.
	Records, Bytes int
	// sum is the sum of the records' CRC-32, as valsort of the sort benchmark has it.
	sum number
}

// Checksum returns the sum of the CRC-32 of all records, as valsort prints it: in
// hexadecimal digits.
func (s Summary) Checksum() string {
	if s.sum.high == 0 {
		return fmt.Sprintf("%x", s.sum.low)
	}
	return fmt.Sprintf("%x%016x", s.sum.high, s.sum.low)
}

// add adds a record.
func (s *Summary) add(record []byte) {
	s.Records++
	s.Bytes += len(record)
	s.sum = s.sum.add(number{0, uint64(crc32.ChecksumIEEE(record))})
}

// plus returns the summary of two sets.
func (s Summary) plus(other Summary) Summary {
	return Summary{s.Records + other.Records, s.Bytes + other.Bytes, s.sum.add(other.sum)}
}

// summarySize is the length of an encoded summary.
const summarySize = 4 * 8

func (s Summary) appendTo(b []byte) []byte {
	for _, word := range [...]uint64{uint64(s.Records), uint64(s.Bytes), s.sum.high, s.sum.low} {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	return b
}

// cutSummary returns the summary at the beginning of b, and what follows.
func cutSummary(b []byte) (s Summary, rest []byte, err error) {
	if len(b) < summarySize {
		return s, nil, fmt.Errorf("samplesort: a summary of %d bytes, want %d", len(b), summarySize)
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return Summary{int(word(0)), int(word(1)), number{word(2), word(3)}}, b[summarySize:], nil
}

// summarize returns the summary of a table.
func (t *table) summarize() (s Summary) {
	for _, e := range t.entries {
		s.add(t.record(e))
	}
	return s
}
