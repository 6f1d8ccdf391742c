package samplesort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Input is what is sorted. Every process can read every task's share of it.
type Input interface {
	// Read returns the records of a task's share, one after the other. It returns the
	// same each time, on every process: the new owner of a task reads it again.
	Read(ctx context.Context, f Format, task, tasks int) ([]byte, error)
}

// share returns which of n things are a task's: those from first to before end.
func share(n, task, tasks int) (first, end int) { return n * task / tasks, n * (task + 1) / tasks }

// Files returns the contents of files as an input, in the order of their names here. They
// must not change meanwhile. A last line without a newline gets one.
func Files(names ...string) Input { return files(names) }

type files []string

func (names files) Read(ctx context.Context, f Format, task, tasks int) (all []byte, err error) {
	sizes, total, err := names.sizes(f)
	if err != nil {
		return nil, err
	}
	first, end := share(total, task, tasks)
	if f == Records {
		first, end = share(total/recordSize, task, tasks)
		first, end = first*recordSize, end*recordSize
	}
	for i, name := range names {
		if from, to := max(first, 0), min(end, sizes[i]); from < to {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			all, err = appendRange(all, name, f, from, to)
			if err != nil {
				return nil, err
			}
		}
		first, end = first-sizes[i], end-sizes[i]
	}
	return all, nil
}

// sizes returns the sizes of the files and their sum.
func (names files) sizes(f Format) (sizes []int, total int, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return nil, 0, err
		case !info.Mode().IsRegular():
			return nil, 0, fmt.Errorf("%s is no regular file, which could be read again", name)
		case f == Records && info.Size()%recordSize != 0:
			return nil, 0, fmt.Errorf("%s: %d bytes are no whole number of records of %d bytes", name, info.Size(), recordSize)
		}
		sizes, total = append(sizes, int(info.Size())), total+int(info.Size())
	}
	return sizes, total, nil
}

// appendRange appends the records of a file between two offsets. A line that is at an offset
// belongs to the range before.
func appendRange(b []byte, name string, f Format, from, to int) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if f == Lines {
		from, err = nextLine(file, from)
		if err != nil {
			return nil, err
		}
		to, err = nextLine(file, to)
		if err != nil {
			return nil, err
		}
	}
	had := len(b)
	b = slices.Grow(b, to-from+1)[:had+to-from] // and a newline
	if _, err := file.ReadAt(b[had:], int64(from)); err != nil {
		return nil, fmt.Errorf("%s, which must not change: %w", name, err)
	}
	if f == Lines && len(b) > had && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return b, nil
}

// nextLine returns the offset of the first line that begins after an offset, or the end of
// the file. The first line of the file begins at 0.
func nextLine(file *os.File, offset int) (int, error) {
	if offset == 0 {
		return 0, nil
	}
	for buffer := make([]byte, 4096); ; {
		n, err := file.ReadAt(buffer, int64(offset))
		if i := bytes.IndexByte(buffer[:n], '\n'); i >= 0 {
			return offset + i + 1, nil
		}
		offset += n
		if errors.Is(err, io.EOF) {
			return offset, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
