package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrChanged is returned when the file has changed while it was copied.
var ErrChanged = errors.New("transfer: the file has changed meanwhile")

// source is the file that is sent.
type source struct {
	file     *os.File
	chunk    int64 // size of a chunk, in tests
	manifest *manifest
}

// openSource opens a file that is to be sent to a folder, and hashes its chunks on all
// processors.
func openSource(ctx context.Context, name, dir string, incarnation uint64, chunk int64) (*source, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	s := &source{file: file, chunk: chunk}
	if err := s.describe(ctx, filepath.Base(name), dir, incarnation); err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) describe(ctx context.Context, name, dir string, incarnation uint64) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("transfer: %s is not a regular file", s.file.Name())
	}
	m := &manifest{sender: incarnation, dir: path.Clean(dir), name: name, mode: info.Mode().Perm(), size: info.Size()}
	m.chunk = cmp.Or(s.chunk, chunkSize(m.size))
	m.hashes = make([]Hash, min(chunks(m.size, m.chunk), maxChunks+1))
	s.manifest = m
	if err := m.check(); err != nil {
		return fmt.Errorf("transfer: %s: %w", s.file.Name(), err)
	}
	return s.hash(ctx)
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
				if errs[w] = errors.Join(ctx.Err(), s.read(i, data[:length])); errs[w] == nil {
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
	_, err := s.file.ReadAt(data, offset)
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
