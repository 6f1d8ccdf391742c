// Package tables writes datasets: tables as Parquet files, each in parts and each part in several
// places.
package tables

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pleach-go/pleach/sql/dataset"
)

// Set is a dataset that is being written. Its parts may be written at the same time.
type Set struct {
	dataset.Dataset
	dir string
}

// New creates the directories of a dataset. The directory must be new or empty.
func New(dir string, parts, replicas int, tables []string) (*Set, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s has files already, such as %s: choose a new or empty directory", dir, entries[0].Name())
	}
	s := &Set{dataset.Dataset{Parts: parts, Files: make(map[string][]int64)}, dir}
	for i := range replicas {
		s.Places = append(s.Places, fmt.Sprintf("replica-%d", i))
	}
	for _, table := range tables {
		s.Files[table] = make([]int64, parts)
		for _, place := range s.Places {
			if err := os.MkdirAll(filepath.Join(dir, place, table), 0o777); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// File returns the file for a part of a table, in the first place.
func (s *Set) File(table string, part int) string { return s.file(0, table, part) }

func (s *Set) file(place int, table string, part int) string {
	return dataset.File(filepath.Join(s.dir, s.Places[place]), table, part)
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

// Save writes the description of the dataset, which makes it complete.
func (s *Set) Save() error { return s.Dataset.Save(s.dir) }

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
