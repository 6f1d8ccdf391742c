package main

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"log/slog"
	"os"
)

// isTerminal reports whether w is a terminal: only then there are colors and a
// progress bar. (The null device passes too, which does no harm.)
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// wantsColor follows no-color.org.
func wantsColor(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// newLogger writes a line for each event.
func newLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// savePicture draws first and creates the file only if that worked.
func savePicture(name string, draw func(io.Writer) error) error {
	var picture bytes.Buffer
	if err := draw(&picture); err != nil {
		return failure{err}
	}
	if err := os.WriteFile(name, picture.Bytes(), 0o666); err != nil {
		return failure{err}
	}
	return nil
}

// writeFile creates a file and lets write fill it, piece by piece. A disk that
// is full may show only when the file is closed.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = buffered(f, write)
	return cmp.Or(err, f.Close())
}

// buffered lets write fill w in large pieces.
func buffered(w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriter(w)
	err := write(b)
	return cmp.Or(err, b.Flush())
}
