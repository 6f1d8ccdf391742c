package pleach

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/wire"
)

// dataDir is the folder of a member: a lock, and the state of its seat. A nil dataDir
// saves nothing.
type dataDir struct {
	path string
	lock *os.File
	// next is the nonce under which a process that was started again asks for its place,
	// or 0. It stays the same over further restarts until the process has the place: a
	// view may admit it after it has ended, and then it is the next one's.
	next uint64
}

// The files in the folder. A state is written beside the old one and then renamed, so
// that there is a whole one at any time.
const (
	lockFile  = "lock"
	stateFile = "member"
)

// openDataDir locks the folder of a member, if the config has one.
func (c *Config) openDataDir() (*dataDir, error) {
	if c.DataDir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(c.DataDir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("Config.DataDir %s is in use by another process: %w", c.DataDir, err)
	}
	return &dataDir{path: c.DataDir, lock: f}, nil
}

// open locks the folder of this process, and returns the seat that it has.
func (s *initialState) open(c *Config) (saved *membership.Seat, err error) {
	if s.data, err = c.openDataDir(); err == nil {
		saved, err = s.data.load(c.Group)
	}
	if err == nil && saved != nil && saved.Self.Identity != s.self.Identity {
		err = fmt.Errorf("Config.DataDir %s belongs to member %q, and this process is %q", c.DataDir, saved.Self.Identity, s.self.Identity)
	}
	if err == nil && saved != nil {
		if s.data.next == 0 {
			s.data.next = s.self.Nonce // saved before the seat says anything
		}
		s.self.Nonce = s.data.next
	}
	return saved, err
}

// closeAll releases what a process that has not become a member has opened.
func (s *initialState) closeAll(listener net.Listener) error {
	s.data.close()
	if s.candidate != nil {
		return s.candidate.Close()
	}
	return listener.Close()
}

// close unlocks the folder.
func (d *dataDir) close() {
	if d != nil {
		_ = d.lock.Close()
	}
}

// load returns the seat that was saved for a group, or nil if there is none.
func (d *dataDir) load(group string) (*membership.Seat, error) {
	if d == nil {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(d.path, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := wire.NewDecoder(b)
	name := string(r.Bytes())
	d.next = r.Uint64()
	seat, err := membership.DecodeSeat(r.Rest())
	switch {
	case cmp.Or(r.Err(), err) != nil:
		return nil, fmt.Errorf("Config.DataDir %s: %w; remove it to start without a vote", d.path, cmp.Or(r.Err(), err))
	case name != group:
		return nil, fmt.Errorf("Config.DataDir %s belongs to a member of group %q", d.path, name)
	}
	return seat, nil
}

// save saves a seat. With sync it is on the disk when save returns.
func (d *dataDir) save(group string, state []byte, sync bool) error {
	path := filepath.Join(d.path, stateFile)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(wire.AppendUint64(wire.AppendBytes(nil, []byte(group)), d.next), state...))
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

// clear forgets the seat: this process is no longer a member.
func (d *dataDir) clear() {
	if d != nil {
		_ = os.Remove(filepath.Join(d.path, stateFile))
	}
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

// saveVote saves the state of this member, within node.Do. A member that cannot must not
// vote, so it is no longer one.
func (g *Group) saveVote(state []byte, sync bool) error {
	g.data.next = 0
	err := g.data.save(g.config.Group, state, sync)
	if err != nil {
		g.log.Error("cannot save the vote of this member", "cause", err)
		g.end(fmt.Errorf("pleach: Config.DataDir: %w", err))
	}
	return err
}
