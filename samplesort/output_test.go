package samplesort

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func bg() context.Context { return context.Background() }

// writeOutput writes a sorted output of two files.
func writeOutput(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "output")
	if err := prepareOutput(dir); err != nil {
		t.Fatal(err)
	}
	var sum Summary
	for task, text := range []string{"a\nb\nb\n", "b\nc\n"} {
		s, err := writeTable(dir, task, tableOf(t, rules{Format: Lines}, []byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		sum = sum.plus(s.kept)
	}
	if err := complete(dir, rules{Format: Lines}, 2, sum); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCheck(t *testing.T) {
	got, err := Check(t.Context(), writeOutput(t))
	if err != nil || got.Records != 5 || got.Bytes != 10 || got.Files != 2 || got.Duplicates != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	long := writeOutput(t)
	b := bytes.Repeat([]byte{'x'}, 5*bufferSize/2)
	b[len(b)-1] = '\n'
	s, err := writeTable(long, 2, tableOf(t, rules{Format: Lines}, b, b))
	if err != nil {
		t.Fatal(err)
	}
	if err := complete(long, rules{Format: Lines}, 3, got.plus(s.kept)); err != nil {
		t.Fatal(err)
	}
	if got, err := Check(t.Context(), long); err != nil || got.Records != 7 || got.Duplicates != 3 {
		t.Errorf("with long lines: %+v, %v", got, err)
	}
	for _, c := range []struct{ about, file, text, want string }{
		{"a record that is not in order", fileName(0), "a\nb\na\n", "record 2 of"},
		{"a file that is not in order", fileName(1), "a\nc\n", "record 0 of"},
		{"another record", fileName(1), "b\nd\n", "checksum"},
		{"a record too few", fileName(1), "b\n", "4 records"},
		{"half a record", fileName(1), "b\nc", "unexpected EOF"},
		{"a marker that is none", Marker, "x", Marker},
	} {
		dir := writeOutput(t)
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(t.Context(), dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.about, err, c.want)
		}
	}
	for _, name := range []string{Marker, fileName(0)} {
		dir := writeOutput(t)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(t.Context(), dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// What dead processes have left is removed before the output is marked.
func TestCompleteRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, temporary+"part-00001-123"), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := complete(dir, rules{}, 0, Summary{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != Marker {
		t.Errorf("%v, %v", entries, err)
	}
}

// A file that was not written to its end has no name, and leaves nothing.
func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	full := errors.New("full")
	err := writeFile(dir, "name", func(w *bufio.Writer) error {
		_, err := w.Write(make([]byte, 2*bufferSize))
		if entries, _ := os.ReadDir(dir); len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), temporary) {
			t.Errorf("while it is written there is %v", entries)
		}
		return errors.Join(full, err)
	})
	if entries, _ := os.ReadDir(dir); !errors.Is(err, full) || len(entries) != 0 {
		t.Errorf("%v, and %v is left", err, entries)
	}
}

// A process is killed when it has written its file, and the output is completed with that
// while the new owner of its task writes the file again.
func TestCompletedWhileWritten(t *testing.T) {
	dir := t.TempDir()
	write := func(w *bufio.Writer) error { _, err := w.WriteString("some line\n"); return err }
	err := writeFile(dir, fileName(0), func(w *bufio.Writer) error {
		return errors.Join(writeFile(dir, fileName(0), write), complete(dir, rules{Format: Lines}, 1, Summary{}), write(w))
	})
	b, missing := os.ReadFile(filepath.Join(dir, fileName(0)))
	if err != nil || missing != nil || string(b) != "some line\n" {
		t.Errorf("%v, and the file has %q, %v", err, b, missing)
	}
	err = writeFile(dir, fileName(1), func(w *bufio.Writer) error {
		return errors.Join(complete(dir, rules{Format: Lines}, 1, Summary{}), write(w))
	})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that no process has written: %v", err)
	}
}

func TestOutputMustBeEmpty(t *testing.T) {
	dir := writeOutput(t)
	if err := prepareOutput(dir); err == nil || !strings.Contains(err.Error(), "choose a new or empty directory") {
		t.Errorf("%v", err)
	}
}
