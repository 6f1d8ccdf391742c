package samplesort

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
)

// A splitter is where a bucket begins: a key, and for records with that very key a place in
// the input. So the records of the input have a strict order, and equal keys can be split.
type splitter struct {
	key    []byte
	prefix uint64 // of the key
	task   int    // that read the record
	number int    // of the record in the task's share
}

func (r *rules) compareSplitters(a, b *splitter) int {
	return cmp.Or(r.compareKeys(a.key, b.key), cmp.Compare(a.task, b.task), cmp.Compare(a.number, b.number))
}

// maxSampleKey bounds a key in a sample. A part of a key is as good a limit.
const maxSampleKey = 256

// sampleSize is how many keys a task samples: enough for buckets of similar sizes, and not
// more than all tasks can gather.
func sampleSize(tasks int) int { return min(max(100, 1<<16/tasks), 1000) }

// sample returns random records of a task's share, encoded. It is the same each time.
func sample(t *table, task, size int) []byte {
	if len(t.entries) == 0 {
		return nil
	}
	var b []byte
	random := rand.New(rand.NewPCG(uint64(task), uint64(len(t.entries))))
	for range size {
		number := random.IntN(len(t.entries))
		key := t.key(t.entries[number])
		key = key[:min(len(key), maxSampleKey)]
		b = binary.AppendUvarint(b, uint64(number))
		b = binary.AppendUvarint(b, uint64(len(key)))
		b = append(b, key...)
	}
	return b
}

var errSample = errors.New("samplesort: a sample is malformed")

// decodeSample returns the records that a task has sampled.
func (r *rules) decodeSample(b []byte, task int) (all []splitter, err error) {
	for len(b) > 0 {
		number, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errSample
		}
		b = b[n:]
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return nil, errSample
		}
		key := b[n:][:length]
		all = append(all, splitter{key, r.prefix(key), task, int(number)})
		b = b[n+int(length):]
	}
	return all, nil
}

// chooseSplitters returns where the buckets of all tasks but the first begin: at equal
// distances in the sorted samples. If keys are to be unique, one bucket gets all that are equal.
func (r *rules) chooseSplitters(samples []splitter, tasks int) []splitter {
	if len(samples) == 0 {
		return nil
	}
	slices.SortFunc(samples, func(a, b splitter) int { return r.compareSplitters(&a, &b) })
	limits := make([]splitter, tasks-1)
	for i := range limits {
		limits[i] = samples[(i+1)*len(samples)/tasks]
		if r.Unique {
			limits[i].task, limits[i].number = 0, 0
		}
	}
	return limits
}

// bucketOf returns the bucket of a record: how many buckets begin at it or before.
func bucketOf(limits []splitter, t *table, task, number int) int {
	e := t.entries[number]
	first, end := 0, len(limits)
	for first < end {
		middle := (first + end) / 2
		if t.isBefore(e, task, number, &limits[middle]) {
			end = middle
		} else {
			first = middle + 1
		}
	}
	return first
}

// isBefore reports whether a record is before the beginning of a bucket.
func (t *table) isBefore(e entry, task, number int, s *splitter) bool {
	if e.prefix != s.prefix {
		return e.prefix < s.prefix
	}
	record := splitter{t.key(e), e.prefix, task, number}
	return t.compareSplitters(&record, s) < 0
}

// partition copies the records of a task's share by bucket.
func partition(limits []splitter, t *table, task, tasks int) [][]byte {
	buckets, sizes, total := make([]int32, len(t.entries)), make([]int, tasks), 0
	for number, e := range t.entries {
		bucket := bucketOf(limits, t, task, number)
		size := len(t.record(e))
		buckets[number] = int32(bucket)
		sizes[bucket] += size
		total += size
	}
	memory, parts := make([]byte, total), make([][]byte, tasks)
	for bucket, size := range sizes {
		parts[bucket], memory = memory[:0:size], memory[size:]
	}
	for number, e := range t.entries {
		bucket := buckets[number]
		parts[bucket] = append(parts[bucket], t.record(e)...)
	}
	return parts
}

// pick returns the records of a task's share that are in one bucket.
func pick(limits []splitter, t *table, task, bucket int) (picked []byte) {
	for number, e := range t.entries {
		if bucketOf(limits, t, task, number) == bucket {
			picked = append(picked, t.record(e)...)
		}
	}
	return picked
}
