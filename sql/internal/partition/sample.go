package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// sampleSize is how many keys a task samples at least, if it has as many rows: enough for
// parts of similar sizes. It samples at most twice as many.
const sampleSize = 1000

// Sample reads all rows and returns the keys of some of them, encoded: those of all rows,
// of every second, every fourth and so on. The same rows give the same sample.
func Sample(rows array.RecordReader, column string) ([]byte, error) {
	i, err := keyColumn(rows.Schema(), column)
	if err != nil {
		return nil, err
	}
	var sampled [][]byte
	seen, step := 0, 1
	for rows.Next() {
		batch := rows.RecordBatch()
		keys := keysOf(batch.Column(i))
		for row := range int(batch.NumRows()) {
			if seen%step == 0 {
				sampled = append(sampled, keys.appendOrdered(nil, row))
			}
			seen++
			if len(sampled) > 2*sampleSize {
				step *= 2
				sampled = everySecond(sampled)
			}
		}
	}
	b := binary.AppendUvarint(nil, uint64(step))
	for _, key := range sampled {
		b = binary.AppendUvarint(b, uint64(len(key)))
		b = append(b, key...)
	}
	return b, rows.Err()
}

func everySecond(sampled [][]byte) [][]byte {
	kept := sampled[:0]
	for i := 0; i < len(sampled); i += 2 {
		kept = append(kept, sampled[i])
	}
	return kept
}

var errSample = errors.New("partition: a sample is malformed")

// sampledKey is a key, and for how many rows it stands.
type sampledKey struct {
	key    []byte
	weight uint64
}

// Limits returns the limits of parts: with about as many rows between each two of them.
func Limits(samples [][]byte, parts int) ([][]byte, error) {
	var all []sampledKey
	total := uint64(0)
	for _, b := range samples {
		weight, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errSample
		}
		for b = b[n:]; len(b) > 0; {
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return nil, errSample
			}
			all = append(all, sampledKey{b[n:][:length], weight})
			total += weight
			b = b[n+int(length):]
		}
	}
	slices.SortFunc(all, func(a, b sampledKey) int { return bytes.Compare(a.key, b.key) })
	var limits [][]byte
	passed := uint64(0)
	for _, s := range all {
		for len(limits) < parts-1 && passed >= total*uint64(len(limits)+1)/uint64(parts) {
			limits = append(limits, s.key)
		}
		passed += s.weight
	}
	return limits, nil
}
