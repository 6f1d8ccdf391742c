package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Local is a file of a rollout in this agent's directories: its content has come with the rollout.
type Local struct {
	Dirs      []string // in which the agent takes files
	Dir, Name string
	Mode      fs.FileMode
	// ID is that of the rollout. The file from before is kept under it.
	ID string
}

// Marks in the names of files that are kept for a revert: of the file from before, or that there was none.
const (
	beforeMark = ".pleach-before-"
	absentMark = ".pleach-absent-"
)

// open opens the directory of the file.
func (l *Local) open() (*target, error) {
	if err := CheckFile(l.Name, l.Dir, 0); err != nil {
		return nil, err
	}
	base, elements, err := locate(l.Dirs, l.Dir)
	if err != nil {
		return nil, err
	}
	return openTarget(base, elements, l.Name)
}

// Path returns the path of the file, or nothing if the agent takes no files in its directory.
func (l *Local) Path() string {
	base, elements, err := locate(l.Dirs, l.Dir)
	if err != nil {
		return ""
	}
	return filepath.Join(append(append([]string{base}, elements...), l.Name)...)
}

// Install writes the file, and keeps the one from before for Restore. What earlier rollouts of the file
// have kept is removed.
func (l *Local) Install(data []byte) error {
	t, err := l.open()
	if err != nil {
		return err
	}
	defer t.folder.Close()
	file, err := t.folder.OpenFile(t.part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := awaitLock(file, nil); err != nil {
		return fmt.Errorf("another process receives it: %w", err)
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt(data, 0)
	}
	if err == nil {
		err = t.keep(l.ID)
	}
	if err != nil {
		return err
	}
	return t.publish(file, &manifest{mode: l.Mode.Perm()})
}

// keep keeps the file from before a rollout.
func (t *target) keep(id string) error {
	if err := t.forget(); err != nil {
		return err
	}
	err := t.folder.Link(t.name, "."+t.name+beforeMark+id)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	marker, err := t.folder.Create("." + t.name + absentMark + id)
	if err != nil {
		return err
	}
	return marker.Close()
}

// forget removes what rollouts of the file have kept.
func (t *target) forget() error {
	entries, err := fs.ReadDir(t.folder.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, mark := range []string{beforeMark, absentMark} {
			if strings.HasPrefix(e.Name(), "."+t.name+mark) {
				err = errors.Join(err, t.folder.Remove(e.Name()))
			}
		}
	}
	return err
}

// Restore brings back what was there before Install: the file from before, or none. It does nothing if
// that is done, if Install was not, or if another rollout has replaced the file since.
func (l *Local) Restore() error {
	t, err := l.open()
	if err != nil {
		return err
	}
	defer t.folder.Close()
	err = t.folder.Rename("."+t.name+beforeMark+l.ID, t.name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	absent := "." + t.name + absentMark + l.ID
	_, err = t.folder.Lstat(absent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = t.folder.Remove(t.name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.folder.Remove(absent)
}
