package launch

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// maxLine bounds a line of a process: a longer one is cut into several.
const maxLine = 1 << 20

// keepBuffer is the largest buffer that is kept for the next line: many
// processes have one each.
const keepBuffer = 1 << 16

// Stream is where the lines of all processes go.
type Stream struct {
	io.Writer
	Color bool
}

// Output merges what processes print, in whole lines. Both streams share a lock,
// since both often end on one terminal.
type Output struct {
	Stdout, Stderr Stream
	// Prefix writes a rank before each of its lines, Timestamps the seconds since
	// the start.
	Prefix, Timestamps bool

	start  time.Time
	mu     sync.Mutex
	buffer []byte
	// broken gets the first error of Stdout: its reader is gone.
	broken chan error
}

// begin starts the clock.
func (o *Output) begin() {
	o.start, o.broken = time.Now(), make(chan error, 1)
}

// notice writes a line about the job itself to Stderr.
func (o *Output) notice(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.Stderr, "pleach: "+format+"\n", args...)
}

// lines takes what a rank prints, in pieces of any size, and writes whole lines.
type lines struct {
	output  *Output
	to      *Stream
	rank    int
	partial []byte
	// whole is called with each line, without its end, before the line is written: the
	// output may be slow. If nil, it is not.
	whole func(line []byte)
}

func (l *lines) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			end = len(b)
		}
		end = min(end, maxLine-len(l.partial))
		l.partial = append(l.partial, b[:end]...)
		b = b[end:]
		if l.partial[len(l.partial)-1] == '\n' || len(l.partial) == maxLine {
			l.flush()
		}
	}
	return n, nil
}

// flush writes a line that has no end yet.
func (l *lines) flush() {
	if len(l.partial) == 0 {
		return
	}
	if l.whole != nil {
		l.whole(bytes.TrimRight(l.partial, "\r\n"))
	}
	l.output.line(l.to, l.rank, l.partial)
	l.partial = l.partial[:0]
	if cap(l.partial) > keepBuffer {
		l.partial = nil
	}
}

// line writes one line, in one piece, with its prefix and an end.
func (o *Output) line(to *Stream, rank int, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.appendPrefix(o.buffer[:0], to.Color, rank)
	b = append(b, text...)
	if b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	o.buffer = b
	if cap(b) > keepBuffer {
		o.buffer = nil
	}
	if _, err := to.Write(b); err != nil && to == &o.Stdout {
		select {
		case o.broken <- err:
		default:
		}
	}
}

func (o *Output) appendPrefix(b []byte, color bool, rank int) []byte {
	if !o.Prefix && !o.Timestamps {
		return b
	}
	if color {
		// These can be read on black and on white. Red is for programs that mean it.
		colors := [...]int{36, 32, 35, 33, 34, 96, 92, 95, 93, 94}
		b = fmt.Appendf(b, "\x1b[%dm", colors[rank%len(colors)])
	}
	b = append(b, '[')
	if o.Prefix {
		b = strconv.AppendInt(b, int64(rank), 10)
	}
	if o.Timestamps {
		if o.Prefix {
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
