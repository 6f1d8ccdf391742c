package launch

import (
	"errors"
	"io"
	"os"
	"time"
)

// Everything that a dead process has printed is read, however slow the reader
// is. A process that left its group may hold the pipe open for ever, so that
// reading is bounded.
const (
	drainTimeout = 500 * time.Millisecond
	drainReads   = 64
	readSize     = 4096 // a pipe holds 16 of them
)

// drain reads a pipe. Its deadline says that the process has ended: from then on
// it reads only what is in the pipe already.
type drain struct {
	file  *os.File
	reads int // since the deadline
}

func (d *drain) Read(b []byte) (int, error) {
	n, err := d.file.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) || d.reads == drainReads {
		return n, err
	}
	d.reads++
	_ = d.file.SetReadDeadline(time.Now().Add(drainTimeout))
	return d.file.Read(b)
}

// copyTo writes to w what is read, until the end. Its buffer is small, as each
// of many processes has two pipes.
func (d *drain) copyTo(w io.Writer) {
	b := make([]byte, readSize)
	for {
		n, err := d.Read(b)
		if n > 0 {
			_, _ = w.Write(b[:n]) // a writer that fails must not block the process
		}
		if err != nil {
			return
		}
	}
}
