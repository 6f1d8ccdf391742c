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

// Folder is the folder of a member: a lock, and the state of its seat. A nil Folder
// saves nothing. Two copies of the state are there: the last one that a frame depended on,
// which is on the disk, and maybe a later one that only follows the view, and may get lost.
type Folder struct {
	path, group string
	lock        *os.File
	saving      sync.WaitGroup // what SaveLater has begun

	mu     sync.Mutex // of the following
	saves  uint64     // the copies so far: the one with the highest number counts
	starts uint64     // the processes that have used the folder
	// next is the nonce under which the process asks for its place, or 0: it has it. It
	// is saved before any process hears of it, and stays the same over further restarts
	// until the process has the place: a view may admit it after it has ended, and then
	// the place is the next one's.
	next uint64
	// former is the last view that the process before knew, and was not in any more, with the
	// decisions that have led there. Maybe no other process knows it.
	former []byte
	left   bool // the process is no longer a member
}

// The files in the folder. A state is written beside the old one and then renamed, so
// that there is a whole one at any time.
const (
	lockFile   = "lock"
	stateFile  = "member"
	followFile = "member.view"
)

// Open locks the folder of a member of a group. It is made if it is not there.
func Open(path, group string) (*Folder, error) {
	f, err := Lock(path)
	if err != nil {
		return nil, err
	}
	return &Folder{path: path, group: group, lock: f}, nil
}

// ErrInUse is wrapped by the error of a folder that another process has locked.
var ErrInUse = errors.New("in use")

// Lock locks a folder for this process until the file that it returns is closed. It is made if
// it is not there.
func Lock(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if err := admission.CheckFolder(path); err != nil {
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
			return nil, fmt.Errorf("%w by process %s: end it, or choose another folder", err, cmp.Or(strings.TrimSpace(string(owner)), "unknown"))
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

// Take returns the seat that the process with an ID and a nonce has, and the last view that
// it was not in any more, if there are any. It also returns the nonce under which the process
// asks for its place.
func (d *Folder) Take(id string, nonce uint64) (saved, former *membership.Seat, next uint64, err error) {
	state, err := d.load()
	if err == nil && len(state) > 0 {
		saved, err = membership.DecodeSeat(state)
	}
	switch {
	case err != nil:
		return nil, nil, 0, fmt.Errorf("%w; remove the file %s to start without a vote", err, filepath.Join(d.path, stateFile))
	case saved != nil && saved.Self.Identity != id:
		return nil, nil, 0, fmt.Errorf("it belongs to member %q, and this process is %q", saved.Self.Identity, id)
	}
	if len(d.former) > 0 {
		former, err = membership.DecodeSeat(d.former)
		if err != nil {
			return nil, nil, 0, err
		}
	}
	d.next = cmp.Or(d.next, nonce)
	d.starts++
	return saved, former, d.next, d.Save(state, true)
}

// Starts returns how many processes have used the folder with its present nonce.
func (d *Folder) Starts() uint64 { return d.starts }

// Wait waits until what SaveLater has begun is saved.
func (d *Folder) Wait() { d.saving.Wait() }

// Close unlocks the folder, once it is not written to.
func (d *Folder) Close() {
	if d != nil {
		d.saving.Wait()
		_ = d.lock.Close()
	}
}

// load returns the seat that was saved, or nothing if there is none.
func (d *Folder) load() (state []byte, err error) {
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

// SaveLater saves a seat as Save does, and then calls saved.
func (d *Folder) SaveLater(state []byte, sync bool, saved func(error)) {
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

// Save saves a seat, which may be nothing. With sync it is on the disk when Save returns.
func (d *Folder) Save(state []byte, sync bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write(state, sync)
}

// write writes a seat.
func (d *Folder) write(state []byte, sync bool) error {
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

// Begin saves the place that a process begins in, as a seat or a member, and the nonce under
// which it asks for the next one, before it says anything; 0: it asks for none. A member whose
// folder had the nonce alone would come back as the same one, with other messages. A seat
// whose folder had not the nonce could not take the place that a view gives to it.
func (d *Folder) Begin(place *membership.Seat, next uint64) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next, d.former = next, nil
	return d.write(place.Encode(), true)
}

// Leave forgets the seat, and keeps the view that this process is no longer in.
func (d *Folder) Leave(v *membership.View, led membership.Decisions) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left {
		return nil
	}
	d.left = true
	d.next, d.starts, d.former = 0, 0, membership.NewSeat(membership.Member{}, *v, led).Encode()
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
