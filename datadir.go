package pleach

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/door"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
)

// dataDir is the folder of a member: a lock, and the state of its seat. A nil dataDir
// saves nothing. Two copies of the state are there: the last one that a frame depended on,
// which is on the disk, and maybe a later one that only follows the view, and may get lost.
type dataDir struct {
	path, group string
	lock        *os.File
	saving      sync.WaitGroup // what saveLater has begun

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

// openDataDir locks the folder of a member, if the config has one.
func (c *Config) openDataDir() (*dataDir, error) {
	if c.DataDir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, err
	}
	if err := door.CheckFolder(c.DataDir); err != nil {
		return nil, err
	}
	f, err := openPrivate(filepath.Join(c.DataDir, lockFile), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("in use by another process: %w", err)
	}
	return &dataDir{path: c.DataDir, group: c.Group, lock: f}, nil
}

// openPrivate opens a file for this user alone, whatever its mode was.
func openPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil && runtime.GOOS != "windows" {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open locks the folder of this process, and returns the seat that it has. A folder that
// cannot be used is a mistake in the settings, which does not pass.
func (s *initialState) open(c *Config) (*membership.Seat, error) {
	saved, err := s.openFolder(c)
	if err != nil {
		return nil, &ConfigError{"DataDir", fmt.Sprintf("is %q: %v", c.DataDir, err)}
	}
	return saved, nil
}

// openFolder locks the folder of this process, and returns the seat that it has.
func (s *initialState) openFolder(c *Config) (saved *membership.Seat, err error) {
	if s.data, err = c.openDataDir(); err != nil || s.data == nil {
		return nil, err
	}
	d := s.data
	state, err := d.load()
	if err == nil && len(state) > 0 {
		saved, err = membership.DecodeSeat(state)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; remove it to start without a vote", err)
	case saved != nil && saved.Self.Identity != s.self.Identity:
		return nil, fmt.Errorf("it belongs to member %q, and this process is %q", saved.Self.Identity, s.self.Identity)
	}
	if len(d.former) > 0 {
		if s.former, err = membership.DecodeSeat(d.former); err != nil {
			return nil, err
		}
	}
	d.next = cmp.Or(d.next, s.self.Nonce)
	d.starts++
	s.self.Nonce = d.next
	return saved, d.save(state, true)
}

// closeAll releases what a process that has not become a member has opened.
func (s *initialState) closeAll(listener net.Listener) error {
	s.data.close()
	if s.candidate != nil {
		return s.candidate.Close()
	}
	return listener.Close()
}

// close unlocks the folder, once it is not written to.
func (d *dataDir) close() {
	if d != nil {
		d.saving.Wait()
		_ = d.lock.Close()
	}
}

// load returns the seat that was saved, or nothing if there is none.
func (d *dataDir) load() (state []byte, err error) {
	for _, name := range []string{stateFile, followFile} {
		b, err := os.ReadFile(filepath.Join(d.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
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

// saveLater saves a seat as save does, and then calls saved.
func (d *dataDir) saveLater(state []byte, sync bool, saved func(error)) {
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

// save saves a seat, which may be nothing. With sync it is on the disk when save returns.
func (d *dataDir) save(state []byte, sync bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write(state, sync)
}

// write writes a seat.
func (d *dataDir) write(state []byte, sync bool) error {
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

// enter saves the place of a process that becomes a member, before it says anything. With
// the nonce alone, the next process would be taken for this one, and enter the view in its
// place.
func (d *dataDir) enter(s *initialState) error {
	if d == nil {
		return nil
	}
	d.next, d.former = 0, nil
	return d.save(membership.NewSeat(s.self, s.view, s.decisions).Encode(), true)
}

// leave forgets the seat, and keeps the view that this process is no longer in.
func (d *dataDir) leave(v *membership.View, led membership.Decisions) error {
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

// slowSave is how long saving may take until it is told.
const slowSave = time.Second

// saveVote saves the state of this member beside it, within node.Do. Saving is tried again
// until it succeeds.
func (g *session) saveVote(state []byte, sync bool) {
	began := time.Now()
	slow := time.AfterFunc(slowSave, func() {
		g.noteSave(fmt.Errorf("the disk is slow: saving has begun at %s and goes on", began.Format(time.TimeOnly)))
	})
	g.data.saveLater(state, sync, func(err error) {
		if slow.Stop(); err != nil {
			g.noteSave(err)
		} else if took := time.Since(began); took > slowSave {
			g.noteSave(fmt.Errorf("the disk is slow: saving took %v", took.Round(time.Millisecond)))
		}
		_ = g.node.Do(func(now protocol.Time) { g.inputs.Saved(now, err) })
	})
}

// saveError is why a member could not vote.
type saveError struct {
	at  time.Time
	err error
}

// noteSave tells why this member does not vote.
func (g *session) noteSave(err error) {
	g.log.Warn("this member does not vote before its state is saved", "folder", g.data.path, "cause", err)
	g.notSaved.Store(&saveError{time.Now(), fmt.Errorf("Config.DataDir: %w", err)})
}

// forgetVote forgets the seat of this member, within node.Do: it is no longer one.
func (g *session) forgetVote() {
	v := g.view.Load()
	if err := g.data.leave(v, g.machine.DecisionsUpTo(v.Number)); err != nil {
		g.log.Warn("cannot save that this process is no longer a member", "cause", err)
	}
}
