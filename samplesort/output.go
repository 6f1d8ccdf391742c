package samplesort

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A file gets its name only when it is complete, and the directory its mark last. So a
// reader that sees the mark sees everything, whenever processes die.

// Marker is the name of the file that says that the output is complete. It has the number
// of records and their checksum, as JSON.
const Marker = "_SUCCESS"

// temporary begins the names of files that are not complete.
const temporary = ".unfinished-"

// bufferSize is what is read and written at once.
const bufferSize = 1 << 20

// marker is the content of the file.
type marker struct {
	Format   string `json:"format"`
	Order    Order  `json:"order,omitzero"`
	Files    int    `json:"files"`
	Records  int    `json:"records"`
	Bytes    int    `json:"bytes"`
	Checksum string `json:"checksum"`
}

func fileName(task int) string { return fmt.Sprintf("part-%05d", task) }

// prepareOutput creates the directory. It returns an error if there is something in it.
func prepareOutput(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("samplesort: %s has files already, such as %s: choose a new or empty directory", dir,
			entries[0].Name())
	}
	return err
}

// prefetched is how many records are touched before they are copied. Sorted records lie
// anywhere in memory, and the processor fetches several at the same time.
const prefetched = 64

// writeTable writes a task's file.
func writeTable(dir string, task int, t *table) (w written, err error) {
	var s Summary
	err = writeFile(dir, fileName(task), func(w *bufio.Writer) error {
		for some := range slices.Chunk(t.entries, prefetched) {
			t.touch(some)
			for _, e := range some {
				record := t.record(e)
				if _, err := w.Write(record); err != nil {
					return err
				}
				s.add(record)
			}
		}
		return nil
	})
	return written{s, t.dropped}, err
}

// complete marks the output as complete, and removes what dead processes have left.
func complete(dir string, r rules, files int, s Summary) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return writeFile(dir, Marker, func(w *bufio.Writer) error {
		return json.NewEncoder(w).Encode(marker{r.Format.String(), r.Order, files, s.Records, s.Bytes, s.Checksum()})
	})
}

// written is what a task has written to its file, and what it has left out.
type written struct{ kept, dropped Summary }

func (w written) appendTo(b []byte) []byte { return w.dropped.appendTo(w.kept.appendTo(b)) }

func cutWritten(b []byte) (w written, err error) {
	w.kept, b, err = cutSummary(b)
	if err == nil {
		w.dropped, _, err = cutSummary(b)
	}
	return w, err
}

// writeFile lets write fill a file, and gives the file its name afterwards.
func writeFile(dir, name string, write func(*bufio.Writer) error) error {
	file, err := os.CreateTemp(dir, temporary+name+"-*")
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(file, bufferSize)
	err = write(b)
	err = cmp.Or(err, b.Flush(), file.Chmod(0o644))
	if err = cmp.Or(err, file.Close()); err == nil {
		err = giveName(file.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// giveName renames a file that is complete. If it is gone, but there is one with the name,
// another owner of the task has written that: the output was completed with it, and this one
// was taken for what a dead process has left.
func giveName(file, name string) error {
	err := os.Rename(file, name)
	if errors.Is(err, os.ErrNotExist) {
		if _, missing := os.Stat(name); missing == nil {
			return nil
		}
	}
	return err
}
