package cli

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"time"
)

// IsTerminal reports whether w is a terminal: only then there are colors and a
// progress bar. (The null device passes too, which does no harm.)
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// WantsColor follows no-color.org.
func WantsColor(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w)
}

// Buffered lets write fill w in large pieces.
func Buffered(w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriter(w)
	err := write(b)
	return cmp.Or(err, b.Flush())
}

// ProgressDelay is how long work may take before it shows how far it is.
const ProgressDelay = 2 * time.Second

// Late writes to w what comes after the ProgressDelay, and discards what comes before.
func Late(w io.Writer) io.Writer { return lateWriter{w, time.Now().Add(ProgressDelay)} }

type lateWriter struct {
	io.Writer
	from time.Time
}

func (w lateWriter) Write(text []byte) (int, error) {
	if time.Now().Before(w.from) {
		return len(text), nil
	}
	return w.Writer.Write(text)
}
