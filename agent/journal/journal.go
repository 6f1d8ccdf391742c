// Package journal keeps the last messages of an agent in files, so that they outlive it. It
// has segments: each begins with a snapshot of what the records behind it build on, so that
// old segments are deleted and a damaged one costs no more than itself and those before it.
//
// A record is in the operating system's hands when Append returns, so it outlives the process.
// It is not synced: what the agent loses with the power of its host, it gets from other agents.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/internal/driver/datadir"
)

// Limits of a journal.
const (
	suffix     = ".log"
	segments   = 4       // about, when the journal is full
	minSegment = 1 << 20 // bytes, unless the journal is smaller
	// MaxRecord is the longest record in bytes.
	MaxRecord = 32 << 20
	// maxSegment is how much of a file is read: no segment is longer.
	maxSegment = 1<<30 + MaxRecord
)

// Journal is the files of an agent. Its methods are for one goroutine.
type Journal struct {
	dir   string
	limit int64
	lock  *os.File

	files  []segmentFile // in order; the last one is written, if it is open
	open   *os.File      // nil: no segment was begun
	buffer []byte
}

// segmentFile is a file of a journal.
type segmentFile struct {
	number uint64
	size   int64
}

// Open locks a directory for the journal of this process, which has about so many bytes at most.
func Open(dir string, limit int64) (*Journal, error) {
	lock, err := datadir.Lock(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, limit: limit, lock: lock}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	for _, e := range entries {
		number, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), suffix), 10, 63)
		info, statErr := e.Info()
		if err != nil || statErr != nil || j.path(number) != filepath.Join(dir, e.Name()) || !info.Mode().IsRegular() {
			continue // not this package's
		}
		j.files = append(j.files, segmentFile{number, info.Size()})
	}
	slices.SortFunc(j.files, func(a, b segmentFile) int { return cmp.Compare(a.number, b.number) })
	return j, nil
}

func (j *Journal) path(number uint64) string {
	return filepath.Join(j.dir, fmt.Sprintf("%016d%s", number, suffix))
}

// Read calls snapshot with the first record of each segment, and record with the others. A
// segment that is damaged ends where the damage is. What the functions return an error for is
// damaged, too.
func (j *Journal) Read(snapshot, record func([]byte) error) error {
	var failed error
	for i := range j.files {
		f := &j.files[i]
		if f.size > maxSegment {
			failed = errors.Join(failed, fmt.Errorf("%s has %d bytes: it is not read", j.path(f.number), f.size))
			continue
		}
		b, err := os.ReadFile(j.path(f.number))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		take := snapshot
		valid, err := scan(b, MaxRecord, func(r []byte) error {
			err := take(r)
			take = record
			return err
		})
		if valid < len(b) {
			failed = errors.Join(failed, fmt.Errorf("%s is damaged behind byte %d", j.path(f.number), valid), err,
				os.Truncate(j.path(f.number), int64(valid)))
			f.size = int64(valid)
		}
	}
	return failed
}

// Resume continues the last segment, after Read. It returns false if that is full, damaged for
// good, or not there: then a segment has to be begun.
func (j *Journal) Resume() bool {
	j.end()
	if len(j.files) == 0 {
		return false
	}
	current := j.files[len(j.files)-1]
	f, err := os.OpenFile(j.path(current.number), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	j.open = f
	if err != nil || info.Size() != current.size || current.size == 0 || j.Full() {
		j.end()
	}
	return j.open != nil
}

// Full reports whether the next record needs a new segment.
func (j *Journal) Full() bool {
	return j.open == nil || j.files[len(j.files)-1].size >= max(j.limit/segments, min(minSegment, j.limit))
}

// Begin begins a segment, and deletes the oldest ones beyond the limit.
func (j *Journal) Begin(snapshot []byte) error {
	j.end()
	next := uint64(1)
	if n := len(j.files); n > 0 {
		next = j.files[n-1].number + 1
	}
	f, err := os.OpenFile(j.path(next), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	j.open, j.files = f, append(j.files, segmentFile{number: next})
	if err := j.Append(snapshot); err != nil {
		j.files = j.files[:len(j.files)-1]
		return errors.Join(err, os.Remove(j.path(next)))
	}
	return j.trim()
}

// Append writes records. After an error the segment has ended.
func (j *Journal) Append(records ...[]byte) error {
	if j.open == nil {
		return errors.New("no segment was begun")
	}
	current := &j.files[len(j.files)-1]
	j.buffer = j.buffer[:0]
	for _, r := range records {
		if len(r) > MaxRecord {
			j.end()
			return fmt.Errorf("a record has %d bytes: %d at most", len(r), MaxRecord)
		}
		before := len(j.buffer)
		j.buffer = appendRecord(j.buffer, current.size+int64(before), r)
	}
	n, err := j.open.Write(j.buffer)
	current.size += int64(n)
	if err != nil {
		j.end()
	}
	if cap(j.buffer) > minSegment {
		j.buffer = nil
	}
	return err
}

// trim deletes the oldest segments that the others have the limit without.
func (j *Journal) trim() (err error) {
	var newer int64
	for i := len(j.files) - 1; i > 0; i-- {
		newer += j.files[i].size
		if newer < j.limit {
			continue
		}
		for _, f := range j.files[:i] {
			if failed := os.Remove(j.path(f.number)); !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
		j.files = slices.Delete(j.files, 0, i)
		break
	}
	return err
}

// end ends the segment that is written.
func (j *Journal) end() {
	if j.open != nil {
		_ = j.open.Close() // what was written is in the system's hands
		j.open = nil
	}
}

// Close ends the journal, and unlocks its directory.
func (j *Journal) Close() error {
	j.end()
	return j.lock.Close()
}
