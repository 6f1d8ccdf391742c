package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// maxLine bounds a line of a process: what is longer is cut into several.
const maxLine = 1 << 20

// output merges what processes print, in whole lines. Both streams have one
// lock, since both often end on one terminal.
type output struct {
	stdout, stderr     io.Writer
	prefix, timestamps bool
	color              map[io.Writer]bool
	start              time.Time

	mu     sync.Mutex
	buffer []byte
	// broken gets the first error of stdout: nobody reads any more.
	broken chan error
}

func newOutput(stdout, stderr io.Writer, prefix, timestamps bool) *output {
	return &output{
		stdout: stdout, stderr: stderr, prefix: prefix, timestamps: timestamps,
		color:  map[io.Writer]bool{stdout: wantsColor(stdout), stderr: wantsColor(stderr)},
		start:  time.Now(),
		broken: make(chan error, 1),
	}
}

// copyLines writes the lines of r until its end, or until it fails: then the
// process is dead, and it does not matter how.
func (o *output) copyLines(w io.Writer, rank int, r io.Reader) {
	// Small, as there are two for each of many processes; long lines grow their
	// own buffer, and drop it.
	in := bufio.NewReaderSize(r, 4096)
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		more := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 && (!more || len(line) >= maxLine) {
			o.line(w, rank, line)
			if line = line[:0]; cap(line) > 1<<16 {
				line = nil
			}
		}
		if err != nil && !more {
			return
		}
	}
}

// line writes one line, in one piece, with its prefix and an end.
func (o *output) line(w io.Writer, rank int, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.appendPrefix(o.buffer[:0], o.color[w], rank)
	b = append(b, text...)
	if b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	if o.buffer = b; cap(b) > 1<<16 {
		o.buffer = nil
	}
	if _, err := w.Write(b); err != nil && w == o.stdout {
		select {
		case o.broken <- err:
		default:
		}
	}
}

func (o *output) appendPrefix(b []byte, color bool, rank int) []byte {
	if !o.prefix && !o.timestamps {
		return b
	}
	if color {
		// These can be read on black and on white. Red is for programs that mean it.
		colors := [...]int{36, 32, 35, 33, 34, 96, 92, 95, 93, 94}
		b = fmt.Appendf(b, "\x1b[%dm", colors[rank%len(colors)])
	}
	b = append(b, '[')
	if o.prefix {
		b = strconv.AppendInt(b, int64(rank), 10)
	}
	if o.timestamps {
		if o.prefix {
			b = append(b, ' ')
		}
		b = fmt.Appendf(b, "%.3fs", time.Since(o.start).Seconds())
	}
	b = append(b, ']')
	if color {
		b = append(b, "\x1b[0m"...)
	}
	return append(b, ' ')
}

// say tells the user something about the run itself.
func (o *output) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.stderr, "pleach: "+format+"\n", args...)
}
