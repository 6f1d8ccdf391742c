package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// The data directory of a member is a small disk of its own, so that it can be full while the
// histories are written. It outlives the member's processes.

// diskSize is what a disk holds.
const diskSize = "size=1m,mode=700"

func (r *round) disk(i int) string { return filepath.Join(r.dir, "data-"+memberID(i)) }

// mountDisks gives each host its disk.
func (r *round) mountDisks() error {
	for i := range r.hosts {
		if err := errors.Join(os.MkdirAll(r.disk(i), 0o700), syscall.Mount("tmpfs", r.disk(i), "tmpfs", 0,
			diskSize)); err != nil {
			return err
		}
	}
	return nil
}

// unmountDisks takes the disks away, those of a run that was killed too.
func (r *round) unmountDisks() {
	for i := range r.hosts {
		_ = syscall.Unmount(r.disk(i), syscall.MNT_DETACH) // there may be none
	}
}

func (r *round) filler(i int) string { return filepath.Join(r.disk(i), "filler") }

// fill fills the disk of a host to its last byte.
func (r *round) fill(i int) error {
	f, err := os.Create(r.filler(i))
	if err != nil {
		return nil // it is as full as can be
	}
	defer f.Close()
	for block := make([]byte, 4096); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return nil
}

// empty makes room again.
func (r *round) empty(i int) error {
	if err := os.Remove(r.filler(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
