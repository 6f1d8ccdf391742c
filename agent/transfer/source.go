package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrChanged is returned when the file has changed while it was copied.
var ErrChanged = errors.New("transfer: the file has changed meanwhile")

// File is a file to copy. Its content must not change meanwhile.
type File struct {
	Content io.ReaderAt
	Name    string // without a directory
	Mode    fs.FileMode
	Size    int64
	// Rate is how many bytes of it are sent in a second, at most. If zero, as many as the
	// group takes.
	Rate int64
}

// source is the file that is sent.
type source struct {
	File
	manifest *manifest
}

// newSource describes a file that is to be sent to a directory, by hashing its chunks on all
// processors.
func newSource(ctx context.Context, f File, dir string, incarnation uint64, chunk int64) (*source, error) {
	m := &manifest{
		sender: incarnation, dir: path.Clean(dir), name: f.Name, mode: f.Mode.Perm(), size: f.Size,
		chunk: chunk,
	}
	if f.Size < 0 || f.Size > maxSize {
		return nil, fmt.Errorf("transfer: %s: %d bytes are too many: %d at most", f.Name, f.Size, int64(maxSize))
	}
	m.hashes = make([]Hash, chunks(m.size, m.chunk))
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("transfer: %s: %w", f.Name, err)
	}
	s := &source{f, m}
	return s, s.hash(ctx)
}

// CheckFile returns an error if a file of a name and size cannot be copied to a directory of members.
// A negative size is one that is not known yet.
func CheckFile(name, dir string, size int64) error {
	if size > maxSize {
		return fmt.Errorf("transfer: %s: %d bytes are too many: %d at most", name, size, int64(maxSize))
	}
	if err := errors.Join(checkName(name), checkDir(path.Clean(dir))); err != nil {
		return fmt.Errorf("transfer: %s: %w", name, err)
	}
	return nil
}

// hash hashes all chunks.
func (s *source) hash(ctx context.Context) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, min(runtime.GOMAXPROCS(0), len(s.manifest.hashes)))
	for w := range errs {
		wg.Go(func() {
			data := make([]byte, s.manifest.chunk)
			for i := int(next.Add(1)) - 1; i < len(s.manifest.hashes) && errs[w] == nil; i = int(next.Add(1)) - 1 {
				_, length := s.manifest.span(i)
				errs[w] = errors.Join(ctx.Err(), s.read(i, data[:length]))
				if errs[w] == nil {
					s.manifest.hashes[i] = sha256.Sum256(data[:length])
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// read reads a chunk.
func (s *source) read(i int, data []byte) error {
	offset, _ := s.manifest.span(i)
	_, err := s.Content.ReadAt(data, offset)
	if errors.Is(err, io.EOF) {
		return ErrChanged
	}
	return err
}

// message is the message that carries a chunk. A chunk that was sent before is compared
// with its hash: receivers refuse one that has changed.
func (s *source) message(number uint64, i int, again bool) ([]byte, error) {
	_, length := s.manifest.span(i)
	b := (&message{kind: chunk, copy: number, number: uint32(i)}).appendHead(make([]byte, 0, head+length))
	b = b[:head+length]
	if err := s.read(i, b[head:]); err != nil {
		return nil, err
	}
	if again && sha256.Sum256(b[head:]) != s.manifest.hashes[i] {
		return nil, ErrChanged
	}
	return b, nil
}
