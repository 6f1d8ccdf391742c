// Package tokens keeps fencing tokens rising after all processes of a group have stopped: each
// process writes down a number that no token was above.
package tokens

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/driver/admission"
)

// Clock is the floor of tokens by the time of day, in milliseconds. Tokens rise over a stop of all
// processes as long as clocks are not set back, and tokens are not given faster than that.
func Clock() uint64 { return uint64(max(time.Now().UnixMilli(), 0)) }

// ahead is how far a mark is above the tokens that are given, so that it is seldom written.
const ahead = 1 << 20

// Mark is a number in a file that no token was above. A nil Mark keeps nothing.
type Mark struct {
	path string

	mu    sync.Mutex // guards the rest
	first uint64     // the number that the file had
	value uint64     // the number that the file has
}

// Open reads the mark of a service in a directory, which is made if it is not there. If the
// directory is "", it returns nil.
func Open(dir, service string) (*Mark, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := admission.CheckDir(dir); err != nil {
		return nil, err
	}
	m := &Mark{path: filepath.Join(dir, "tokens."+url.PathEscape(service))}
	b, err := os.ReadFile(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err != nil:
		return nil, err
	case len(b) != 12 || crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]):
		return nil, fmt.Errorf("%s is damaged: remove it if tokens may begin by the clock", m.path)
	}
	m.first = binary.BigEndian.Uint64(b)
	m.value = m.first
	return m, nil
}

// Floor returns a number above all tokens that the processes before this one have covered; 0 if
// there were none.
func (m *Mark) Floor() uint64 {
	if m == nil || m.first == 0 {
		return 0
	}
	return m.first + 1
}

// Cover writes down that a token is given, unless the file has that already. The token must not be
// used if it returns an error.
func (m *Mark) Cover(token uint64) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if token+ahead/2 <= m.value {
		return nil
	}
	err := m.write(token + ahead)
	if err != nil && token <= m.value { // the file is still good for this one
		return nil
	}
	return err
}

// write replaces the file. It is on the disk when write returns.
func (m *Mark) write(value uint64) error {
	b := binary.BigEndian.AppendUint64(nil, value)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	f, err := os.OpenFile(m.path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(m.path+".new", m.path); err != nil {
		return err
	}
	m.value = value
	return syncDir(filepath.Dir(m.path))
}

// syncDir has the names in a directory on the disk. Systems that cannot do so keep them anyway.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
