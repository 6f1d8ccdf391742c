// Package datadir keeps the vote of a member on a disk, so that it counts again after a
// restart: see ADR 21.
package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

// Dir is the data directory of a member: a lock file and the member's persisted vote. A nil Dir
// saves nothing. The vote is saved in up to two files: the last state that a frame depended on,
// which is synced to disk, and maybe a later one that only follows the view and may be lost.
type Dir struct {
	path, group string
	lock        *os.File
	saving      sync.WaitGroup // saves begun by SaveLater

	mu     sync.Mutex // guards the fields below
	saves  uint64     // number of the last saved state; the file with the highest number counts
	starts uint64     // number of processes that have used the directory with the nonce next
	// next is the nonce under which the process asks to be admitted; 0: it is a member. It is
	// saved before it is sent to any process, and kept over further restarts until the process
	// is admitted: a view may admit the process after it has ended, and then its successor,
	// which has the same nonce, is that member.
	next uint64
	// former is the view that excluded the previous process, with the decisions that led to
	// it; nil: none. Possibly no other process has it.
	former []byte
	left   bool // the process is no longer a member
}

// The files in the directory. A state is written to a new file and then renamed, so that
// a complete one exists at any time.
const (
	lockFile   = "lock"
	stateFile  = "member"
	followFile = "member.view"
)

// Open locks the data directory of a member of a group. If it does not exist, Open creates it.
func Open(path, group string) (*Dir, error) {
	f, err := Lock(path)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, group: group, lock: f}, nil
}

// ErrInUse is wrapped by the error for a directory that another process has locked.
var ErrInUse = errors.New("in use")

// Lock locks a directory for this process until the returned file is closed. If the directory
// does not exist, Lock creates it.
func Lock(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if err := admission.CheckDir(path); err != nil {
		return nil, err
	}
	f, err := openPrivate(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		owner, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		if errors.Is(err, ErrInUse) {
			return nil, fmt.Errorf("%w by process %s: end it, or choose another directory", err,
				cmp.Or(strings.TrimSpace(string(owner)), "unknown"))
		}
		return nil, fmt.Errorf("cannot be locked: %w", err)
	}
	_ = f.Truncate(0) // a full disk must not keep the member out
	_, _ = fmt.Fprintln(f, os.Getpid())
	return f, nil
}

// openPrivate opens a file for this user alone, whatever its mode was.
func openPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|admission.NoFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil && runtime.GOOS != "windows" {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Take returns the persisted vote of the process with this ID, and the view that excluded the
// previous process, if they exist. It also returns the nonce under which the process asks to
// be admitted: the given one, unless an earlier one is saved.
func (d *Dir) Take(id string, nonce uint64) (saved, former *membership.SavedVote, next uint64, err error) {
	state, err := d.load()
	if err == nil && len(state) > 0 {
		saved, err = membership.DecodeSavedVote(state)
	}
	switch {
	case err != nil:
		return nil, nil, 0, fmt.Errorf("%w; remove the file %s to start without a vote", err,
			filepath.Join(d.path, stateFile))
	case saved != nil && saved.Self.Identity != id:
		return nil, nil, 0, fmt.Errorf("it belongs to member %q, and this process is %q", saved.Self.Identity, id)
	}
	if len(d.former) > 0 {
		former, err = membership.DecodeSavedVote(d.former)
		if err != nil {
			return nil, nil, 0, err
		}
	}
	d.next = cmp.Or(d.next, nonce)
	d.starts++
	return saved, former, d.next, d.Save(state, true)
}

// Starts returns the number of processes that have used the directory with its current nonce.
func (d *Dir) Starts() uint64 { return d.starts }

// Wait blocks until all saves begun by SaveLater have finished.
func (d *Dir) Wait() { d.saving.Wait() }

// Close waits for pending saves and unlocks the directory.
func (d *Dir) Close() {
	if d != nil {
		d.saving.Wait()
		_ = d.lock.Close()
	}
}

// load returns the latest saved vote, or nothing if there is none.
func (d *Dir) load() (state []byte, err error) {
	for _, name := range []string{stateFile, followFile} {
		b, err := os.ReadFile(filepath.Join(d.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			// Nothing is followed without a state: one that an operator has removed, because it was
			// damaged, may have had promises that the copy of the view lacks.
			return state, nil
		}
		if err != nil {
			return nil, err
		}
		r := wire.NewDecoder(b)
		sum, body := r.Uint32(), r.Rest()
		if r.Err() != nil || crc32.ChecksumIEEE(body) != sum {
			if name == followFile {
				continue // the power went before it was on the disk
			}
			return nil, errors.New("the saved state is damaged, or of another version")
		}
		r = wire.NewDecoder(body)
		saves, group, next, starts, former := r.Uint64(), string(r.Bytes()), r.Uint64(), r.Uint64(), r.Bytes()
		switch {
		case r.Err() != nil:
			return nil, r.Err()
		case group != d.group:
			return nil, fmt.Errorf("it belongs to a member of group %q", group)
		case saves > d.saves:
			d.saves, d.next, d.starts, d.former, state = saves, next, starts, former, r.Rest()
		}
	}
	return state, nil
}

// SaveLater saves a vote in the background, as Save does, and then calls saved.
func (d *Dir) SaveLater(state []byte, sync bool, saved func(error)) {
	d.saving.Go(func() {
		d.mu.Lock()
		var err error
		if !d.left {
			err = d.write(state, sync)
		}
		d.mu.Unlock()
		saved(err)
	})
}

// Save saves a vote, which may be empty. With sync, it is on the disk when Save returns.
func (d *Dir) Save(state []byte, sync bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write(state, sync)
}

// write writes a vote. The caller holds d.mu.
func (d *Dir) write(state []byte, sync bool) error {
	path := filepath.Join(d.path, followFile)
	if sync {
		path = filepath.Join(d.path, stateFile)
	}
	d.saves++
	body := wire.AppendBytes(wire.AppendUint64(nil, d.saves), []byte(d.group))
	body = wire.AppendBytes(wire.AppendUint64(wire.AppendUint64(body, d.next), d.starts), d.former)
	body = append(body, state...)
	f, err := openPrivate(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(append(wire.AppendUint32(nil, crc32.ChecksumIEEE(body)), body...))
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil || !sync {
		return err
	}
	return syncDir(d.path)
}

// Begin saves the vote with which a process starts, as a restarted voter or a member, and the
// nonce under which it asks to be admitted (0: it is a member), before the process sends
// anything. A member whose directory had the nonce but no vote would come back as the same
// member with other messages. A restarted voter whose directory lacked the nonce could not
// become the member that a view admits.
func (d *Dir) Begin(place *membership.SavedVote, next uint64) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next, d.former = next, nil
	return d.write(place.Encode(), true)
}

// Leave deletes the vote, and keeps the view that excluded this process.
func (d *Dir) Leave(v *membership.View, led membership.Decisions) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left {
		return nil
	}
	d.left = true
	d.next, d.starts, d.former = 0, 0, membership.NewSavedVote(membership.Member{}, *v, led).Encode()
	return d.write(nil, true)
}

// syncDir makes a renamed file durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
