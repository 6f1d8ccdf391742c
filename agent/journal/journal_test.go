package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/internal/driver/datadir"
)

// "A will be stored as a FULL record in the first block. B will be split into three fragments:
// first fragment occupies the rest of the first block, second fragment occupies the entirety of
// the second block, and the third fragment occupies a prefix of the third block. This will leave
// six bytes free in the third block, which will be left empty as the trailer. C will be stored
// as a FULL record in the fourth block." (LevelDB, doc/log_format.md)
func TestFormatIsThatOfLevelDB(t *testing.T) {
	var b []byte
	for _, size := range []int{1000, 97270, 8000} {
		b = appendRecord(b, int64(len(b)), make([]byte, size))
	}
	var got []string
	for offset := 0; offset < len(b); {
		if room := blockSize - offset%blockSize; room < headSize {
			got = append(got, fmt.Sprint("trailer ", room))
			offset += room
		}
		length := int(binary.LittleEndian.Uint16(b[offset+4:]))
		got = append(got, fmt.Sprint(offset/blockSize, " ", b[offset+6], " ", length))
		offset += headSize + length
	}
	want := []string{"0 1 1000", "0 2 31754", "1 3 32761", "2 4 32755", "trailer 6", "3 1 8000"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// A value from the tests of LevelDB's crc32c: that of 32 zero bytes, the first one as the type.
	if c, crc := checksum(0, make([]byte, 31)), uint32(0x8a9136aa); c != (crc>>15|crc<<17)+0xa282ead8 {
		t.Errorf("checksum %#x", c)
	}
}

func records(segment []byte) (list []string, valid int) {
	valid, _ = scan(segment, MaxRecord, func(r []byte) error {
		list = append(list, string(r))
		return nil
	})
	return list, valid
}

// Whatever happens to the bytes of a segment, what is read of it is a prefix of what was written.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []byte
		var want []string
		for range rapid.IntRange(0, 8).Draw(t, "records") {
			r := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")},
				rapid.SampledFrom([]int{0, 1, 50, blockSize - headSize, blockSize, 3 * blockSize}).Draw(t, "size"))
			b, want = appendRecord(b, int64(len(b)), r), append(want, string(r))
		}
		got, valid := records(b)
		if !slices.Equal(got, want) || valid != len(b) {
			t.Fatalf("%d of %d records, %d of %d bytes", len(got), len(want), valid, len(b))
		}
		if len(b) == 0 {
			return
		}
		if at := rapid.IntRange(0, len(b)-1).Draw(t, "at"); rapid.Bool().Draw(t, "cut") {
			b = b[:at]
		} else {
			b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		got, valid = records(b)
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) || valid > len(b) {
			t.Fatalf("%d of %d records, %d of %d bytes", len(got), len(want), valid, len(b))
		}
	})
}

// FuzzSegment reads any bytes. What it finds valid, it reads again alike.
func FuzzSegment(f *testing.F) {
	whole := appendRecord(appendRecord(nil, 0, []byte("snapshot")), 15, bytes.Repeat([]byte("x"), 2*blockSize))
	f.Add(whole)
	f.Add(whole[:blockSize+3])
	f.Fuzz(func(t *testing.T, b []byte) {
		list, valid := records(b)
		if again, n := records(b[:valid]); n != valid || !slices.Equal(again, list) {
			t.Errorf("%d records of %d bytes, then %d of %d", len(list), valid, len(again), n)
		}
	})
}

// readAll returns snapshots in brackets, and the other records.
func readAll(t *testing.T, j *Journal) (text string, err error) {
	t.Helper()
	var parts []string
	err = j.Read(func(b []byte) error { parts = append(parts, "["+string(b)+"]"); return nil },
		func(b []byte) error { parts = append(parts, strings.TrimSpace(string(b))); return nil })
	return strings.Join(parts, " "), err
}

func open(t *testing.T, dir string, limit int64) *Journal {
	t.Helper()
	j, err := Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A journal is there after a restart, has its limit, and a torn end costs the torn record only.
func TestJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "messages")
	j := open(t, dir, 1000)
	if _, err := Open(dir, 1000); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	for i := range 60 {
		if j.Full() {
			must(t, j.Begin(fmt.Append(nil, i)))
		}
		must(t, j.Append(fmt.Appendf(nil, "%-100d", i)))
	}
	must(t, j.Close())
	total := int64(0)
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	must(t, err)
	for _, f := range files {
		info, err := os.Stat(f)
		must(t, err)
		total += info.Size()
	}
	if total > 2200 || total < 1000 {
		t.Errorf("%d bytes", total)
	}

	must(t, os.Truncate(files[len(files)-1], 150)) // within the second record
	j = open(t, dir, 1000)
	text, err := readAll(t, j)
	if err == nil || text != "[40] 40 41 42 43 44 45 46 47 48 49 [50] 50" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := readAll(t, j); err != nil {
		t.Errorf("damaged for ever: %q, %v", text, err)
	}
	if !j.Resume() {
		t.Fatal("the last segment does not go on")
	}
	must(t, j.Append([]byte("resumed")))
	must(t, j.Begin([]byte("new")))
	must(t, j.Append(make([]byte, 1000)))
	must(t, j.Close())
	j = open(t, dir, 1000)
	if text, err := readAll(t, j); err != nil || !strings.Contains(text, " resumed [new] ") {
		t.Errorf("%q, %v", text, err)
	}
	if j.Resume() {
		t.Error("a full segment goes on")
	}
	must(t, j.Begin([]byte("newer")))
	if err := j.Append(make([]byte, MaxRecord+1)); err == nil || !j.Full() {
		t.Errorf("a record without a limit: %v", err)
	}
	must(t, j.Close())
}

// A journal that cannot write says so, leaves no file behind, and works again later.
func TestJournalThatCannotWrite(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	j := open(t, dir, 1000)
	defer j.Close()
	must(t, j.Begin([]byte("first")))
	must(t, j.open.Close()) // as a disk that fails
	if err := j.Append([]byte("x")); err == nil {
		t.Error("no error")
	}
	if !j.Full() {
		t.Error("the segment goes on")
	}
	must(t, j.Begin([]byte("again")))
	must(t, j.Append([]byte("y")))
	if text, err := readAll(t, j); err != nil || text != "[first] [again] y" {
		t.Errorf("%q, %v", text, err)
	}
}
