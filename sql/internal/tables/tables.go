// Package tables writes datasets: tables as Parquet files, each in parts and each part in several
// places.
package tables

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/sql/dataset"
)

// Set is a dataset that is being written. Its parts may be written at the same time. They are in a
// directory of their own until all of them are complete, so that a failure leaves nothing behind.
type Set struct {
	dataset.Dataset
	dir     string
	created bool   // there was no dir before
	staging string // in dir
	moved   []string
}

// unfinished begins the name of a directory for parts that are not complete.
const unfinished = ".unfinished-"

// New creates the directories of a dataset. The directory must be new or empty, or have only what a
// killed process has left of another dataset, which is removed. Publish or Discard ends the set.
func New(dir string, parts, replicas int, tables []string) (s *Set, err error) {
	s = &Set{Dataset: dataset.Dataset{Parts: parts, Files: make(map[string][]int64)}, dir: dir}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		s.created = true
	}
	if err := removeLeft(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	s.staging, err = os.MkdirTemp(dir, unfinished)
	if err != nil {
		return nil, err
	}
	for i := range replicas {
		s.Places = append(s.Places, place+strconv.Itoa(i))
	}
	for _, table := range tables {
		s.Files[table] = make([]int64, parts)
		for _, place := range s.Places {
			if err := os.MkdirAll(filepath.Join(s.staging, place, table), 0o777); err != nil {
				return nil, errors.Join(err, s.Discard())
			}
		}
	}
	return s, nil
}

// place begins the names of the places of a dataset.
const place = "replica-"

// removeLeft removes what a killed process has left in a directory. It returns an error if there is
// anything else.
func removeLeft(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The process may have been killed while it published its places.
	killed := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), unfinished) })
	for _, e := range entries {
		if name := e.Name(); !killed || !strings.HasPrefix(name, unfinished) && !strings.HasPrefix(name, place) &&
			name != ".dataset.json" {
			return fmt.Errorf("%s has files already, such as %s: choose a new or empty directory", dir, e.Name())
		}
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// File returns the file for a part of a table, in the first place.
func (s *Set) File(table string, part int) string { return s.file(0, table, part) }

func (s *Set) file(place int, table string, part int) string {
	return dataset.File(filepath.Join(s.staging, s.Places[place]), table, part)
}

// Written copies the file of a part to the other places, and notes its size.
func (s *Set) Written(table string, part int) error {
	for place := 1; place < len(s.Places); place++ {
		if err := copyFile(s.file(place, table, part), s.File(table, part)); err != nil {
			return err
		}
	}
	info, err := os.Stat(s.File(table, part))
	if err != nil {
		return err
	}
	s.Files[table][part] = info.Size()
	return nil
}

// Save writes the description next to the parts, which can then be read.
func (s *Set) Save() error { return s.Dataset.Save(s.staging) }

// Publish moves the parts to their directory, and writes the description there, which makes the dataset
// complete.
func (s *Set) Publish() error {
	for _, place := range s.Places {
		to := filepath.Join(s.dir, place)
		if err := os.Rename(filepath.Join(s.staging, place), to); err != nil {
			return err
		}
		s.moved = append(s.moved, to)
	}
	if err := s.Dataset.Save(s.dir); err != nil {
		return err
	}
	s.moved = nil
	return os.RemoveAll(s.staging)
}

// Discard removes what was written, and the directory if it was new.
func (s *Set) Discard() error {
	var err error
	for _, path := range append(s.moved, s.staging) {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if s.created {
		err = errors.Join(err, os.Remove(s.dir))
	}
	return err
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
