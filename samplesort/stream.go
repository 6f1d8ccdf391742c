package samplesort

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pleach-go/pleach/collective"
)

// Stream returns what the process of rank 0 reads as an input. It can be read only once, and is
// needed again when a process dies, so it is first written to a file next to the output. If rank
// 0 dies before that, the job fails.
func Stream(r io.Reader) Input { return &stream{reader: r} }

type stream struct {
	reader io.Reader
	file   files // that has what was read
}

// streamFile is removed when the output is complete.
const streamFile = temporary + "stream"

// ErrStream is returned by [Run] when the process that reads a stream has died before all of it
// was written to a file.
var ErrStream = errors.New(
	"samplesort: the process that reads the stream has died, and what it had read is lost: sort a file")

func (s *stream) Read(ctx context.Context, f Format, task, tasks int) ([]byte, error) {
	return s.file.Read(ctx, f, task, tasks)
}

// readStream returns when a stream is a file.
func (s *sorter) readStream(ctx context.Context) error {
	in, ok := s.job.Input.(*stream)
	if !ok {
		return nil
	}
	in.file = files{filepath.Join(s.job.Output, streamFile)}
	done := []byte{}
	if s.Rank() == 0 {
		err := writeFile(s.job.Output, streamFile, func(w *bufio.Writer) error {
			_, err := io.Copy(w, in.reader)
			return err
		})
		if err != nil {
			return err
		}
		done = append(done, 1)
	}
	// Rank 0 may die before its word has arrived; the file itself tells then.
	_, err := collective.Broadcast(ctx, s, 0, done, collective.Restore(func(context.Context, int) ([]byte, error) {
		if _, err := os.Stat(in.file[0]); err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrStream, err)
		}
		return []byte{1}, nil
	}))
	return err
}
