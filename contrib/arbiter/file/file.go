// Package file is an arbiter with its records in a directory on storage that all members share.
//
// Every grant is a new file, which is linked to its name when it is complete: of several processes
// that create the next file, the file system lets one succeed. That holds even for a process that
// was suspended or disconnected from the storage, and continues after others have proceeded, which a
// lock would not ensure: network file systems expire locks. The file system needs hard links, as all
// local ones of Unix and NFS have. Files are never deleted: there is one of a few hundred bytes for
// each grant.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/contrib/arbiter"
)

// New returns an arbiter with its records in a directory, which must exist: a directory that is made
// where the storage is not mounted would be a different one on each host.
func New(directory string) (*arbiter.Arbiter, error) {
	info, err := os.Stat(directory)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", directory)
	}
	return arbiter.New(store(directory)), nil
}

// store is a directory with files GROUP.NUMBER.json. The one with the highest number counts.
type store string

// digits is the length of numbers in names: room for every uint64, so that names sort by number.
const digits = 20

// Load implements [arbiter.Store].
func (s store) Load(ctx context.Context, group string) ([]byte, arbiter.Swap, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	last, err := s.last(group)
	if err != nil {
		return nil, nil, err
	}
	var record []byte
	if last > 0 {
		record, err = os.ReadFile(s.name(group, last))
		// The process that created the file may have ended before the name was durable.
		err = errors.Join(err, s.sync())
		if err != nil {
			return nil, nil, err
		}
	}
	swap := func(ctx context.Context, record []byte) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return s.create(s.name(group, last+1), record)
	}
	return record, swap, nil
}

func (s store) name(group string, number uint64) string {
	return filepath.Join(string(s), fmt.Sprintf("%s.%0*d.json", url.PathEscape(group), digits, number))
}

// last returns the highest number of a group, or 0.
func (s store) last(group string) (last uint64, err error) {
	entries, err := os.ReadDir(string(s))
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), url.PathEscape(group)+".")
		text, complete := strings.CutSuffix(rest, ".json")
		if !ok || !complete || len(text) != digits {
			continue
		}
		if number, err := strconv.ParseUint(text, 10, 64); err == nil {
			last = max(last, number)
		}
	}
	return last, err
}

// create creates a file with its content, and reports whether it did not exist.
func (s store) create(name string, content []byte) (created bool, err error) {
	f, err := os.CreateTemp(string(s), ".new-*")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return false, err
	}
	err = os.Link(f.Name(), name)
	if errors.Is(err, fs.ErrExist) {
		return false, nil // NFS may say so after a lost reply; the next Load shows whose file it is
	}
	if err != nil {
		return false, err
	}
	return true, s.sync()
}

// sync makes the names in the directory durable.
func (s store) sync() error {
	d, err := os.Open(string(s))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
