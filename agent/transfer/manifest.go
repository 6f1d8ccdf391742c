package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// Limits of a copy.
const (
	minChunk  = 1 << 12  // a chunk is not shorter, but for the last one
	maxChunk  = 16 << 20 // a member has a few chunks in memory
	maxChunks = 1 << 16  // a manifest has up to 2 MiB
	maxSize   = maxChunk * maxChunks
	maxName   = 200 // leaves room for the names of partial files
	maxDir    = 1024
)

// Hash is the SHA-256 of a chunk, or of a file: that is the hash of the hashes of its
// chunks, a hash tree of one level (Merkle 1987), so that a chunk is hashed once.
type Hash [sha256.Size]byte

// manifest says what a file is, and where it goes.
type manifest struct {
	// sender is the incarnation of the member that sends the file.
	sender uint64
	// dir is the directory, with slashes. A relative one is below the receiver's first directory.
	dir, name string
	mode      fs.FileMode // permissions only
	size      int64
	chunk     int64 // size of a chunk; the last one may be shorter
	hashes    []Hash
}

// defaultChunk is the size of a chunk of a file that is not too long for it.
const defaultChunk = 256 << 10

// chunkSize is the size of the chunks of a file.
func chunkSize(size int64) int64 {
	chunk := int64(defaultChunk)
	for chunk < maxChunk && chunks(size, chunk) > maxChunks {
		chunk *= 2
	}
	return chunk
}

// chunks counts the chunks of a file.
func chunks(size, chunk int64) int { return int((size + chunk - 1) / chunk) }

// span is where a chunk begins, and its length.
func (m *manifest) span(i int) (offset int64, length int) {
	offset = int64(i) * m.chunk
	return offset, int(min(m.chunk, m.size-offset))
}

// digest is the hash of the file: its content address.
func (m *manifest) digest() Hash {
	h := sha256.New()
	for i := range m.hashes {
		h.Write(m.hashes[i][:])
	}
	return Hash(h.Sum(nil))
}

// check says what is wrong with a manifest.
func (m *manifest) check() error {
	switch {
	case m.mode&^fs.ModePerm != 0:
		return errors.New("the mode has more than permissions")
	case m.size < 0 || m.size > maxSize:
		return fmt.Errorf("%d bytes are too many: %d at most", m.size, int64(maxSize))
	case m.chunk < minChunk || m.chunk > maxChunk || m.chunk&(m.chunk-1) != 0:
		return fmt.Errorf("%d bytes are not the size of a chunk", m.chunk)
	case len(m.hashes) > maxChunks || len(m.hashes) != chunks(m.size, m.chunk):
		return errors.New("the chunks are not those of a file of this size")
	}
	return errors.Join(checkName(m.name), checkDir(m.dir))
}

// checkName lets a name through that is one element of a path, and not that of a partial
// file.
func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("a name of %d bytes is too long: %d at most", len(name), maxName)
	case name == "." || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || strings.ContainsRune(name, 0):
		return fmt.Errorf("%q is not the name of a file", name)
	case strings.HasPrefix(name, ".") && strings.HasSuffix(name, partSuffix):
		return fmt.Errorf("%q is the name of a partial file", name)
	}
	return nil
}

// checkDir lets a directory through that has one spelling.
func checkDir(dir string) error {
	switch {
	case len(dir) > maxDir:
		return fmt.Errorf("a directory of %d bytes is too long: %d at most", len(dir), maxDir)
	case dir == "" || path.Clean(dir) != dir || strings.ContainsRune(dir, 0) || strings.Contains(dir, `\`),
		dir == ".." || strings.HasPrefix(dir, "../"):
		return fmt.Errorf("%q is not the name of a directory", dir)
	}
	return nil
}

// manifestVersion is the first byte of a manifest. A receiver refuses others.
const manifestVersion = 1

// appendTo appends the manifest as it travels.
func (m *manifest) appendTo(b []byte) []byte {
	b = append(b, manifestVersion)
	b = binary.BigEndian.AppendUint64(b, m.sender)
	b = binary.BigEndian.AppendUint16(b, uint16(m.mode))
	b = binary.BigEndian.AppendUint64(b, uint64(m.size))
	b = binary.BigEndian.AppendUint64(b, uint64(m.chunk))
	b = appendString(appendString(b, m.name), m.dir)
	for i := range m.hashes {
		b = append(b, m.hashes[i][:]...)
	}
	digest := m.digest()
	return append(b, digest[:]...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// errManifest is returned for bytes that are no manifest.
var errManifest = errors.New("transfer: no manifest")

// fixedManifest is the length of what precedes the names.
const fixedManifest = 1 + 8 + 2 + 8 + 8

// parseManifest is the reverse of appendTo. It keeps nothing of b.
func parseManifest(b []byte) (*manifest, error) {
	if len(b) < fixedManifest {
		return nil, errManifest
	}
	if b[0] != manifestVersion {
		return nil, fmt.Errorf("transfer: a manifest of version %d: this process knows version %d", b[0], manifestVersion)
	}
	m := &manifest{
		sender: binary.BigEndian.Uint64(b[1:]),
		mode:   fs.FileMode(binary.BigEndian.Uint16(b[9:])),
		size:   int64(binary.BigEndian.Uint64(b[11:])),
		chunk:  int64(binary.BigEndian.Uint64(b[19:])),
	}
	b = b[fixedManifest:]
	var ok [2]bool
	m.name, b, ok[0] = cutString(b)
	m.dir, b, ok[1] = cutString(b)
	if !ok[0] || !ok[1] || len(b) == 0 || len(b)%sha256.Size != 0 {
		return nil, errManifest
	}
	m.hashes = make([]Hash, len(b)/sha256.Size-1)
	for i := range m.hashes {
		b = b[copy(m.hashes[i][:], b):]
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	if m.digest() != Hash(b) {
		return nil, fmt.Errorf("%w: the hash of its hashes is another one", errManifest)
	}
	return m, nil
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	if len(b) < n {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}
