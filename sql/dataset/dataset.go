// Package dataset has the tables of a job as Parquet files: each in parts, and each part in
// several places. A place is a directory, such as a disk or what another host exports. When
// a place is lost, the parts are read from another one.
//
//	tpch1/dataset.json
//	tpch1/replica-0/orders/part-00000.parquet
//	tpch1/replica-1/orders/part-00000.parquet
package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// manifest is the file that describes a dataset. It is written last.
const manifest = "dataset.json"

// Dataset describes tables in parts.
type Dataset struct {
	// Scale is the scale factor of TPC-H data, or 0.
	Scale float64 `json:"scale,omitempty"`
	// Parts is the number of files of each table in each place.
	Parts int `json:"parts"`
	// Places are directories that have all files: relative to the manifest, or absolute.
	Places []string `json:"places"`
	// Files are the sizes of each table's files in bytes, by part.
	Files map[string][]int64 `json:"files"`
	// Answers are the rows of right answers, by query.
	Answers map[string][][]string `json:"answers,omitempty"`

	dir string // of the manifest
}

// Open reads the description of a dataset.
func Open(dir string) (*Dataset, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifest))
	if err != nil {
		return nil, fmt.Errorf("dataset: %s is no complete dataset: %w", dir, err)
	}
	d := &Dataset{dir: dir}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", filepath.Join(dir, manifest), err)
	}
	for table, sizes := range d.Files {
		if len(sizes) != d.Parts || len(d.Places) == 0 {
			return nil, fmt.Errorf("dataset: %s: table %s has %d files for %d parts in %d places", dir, table, len(sizes),
				d.Parts, len(d.Places))
		}
	}
	return d, nil
}

// Save writes the description. The files are to be there.
func (d *Dataset) Save(dir string) error {
	d.dir = dir
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "."+manifest)
	if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
		return errors.Join(err, os.RemoveAll(file))
	}
	return os.Rename(file, filepath.Join(dir, manifest))
}

// File returns the name of a part of a table in a place.
func File(place, table string, part int) string {
	return filepath.Join(place, table, fmt.Sprintf("part-%05d.parquet", part))
}

// Tables returns the files of a task's parts, by table.
func (d *Dataset) Tables(_ context.Context, task, tasks int) (map[string][]string, error) {
	if tasks > d.Parts {
		return nil, fmt.Errorf("dataset: %s has %d parts for %d processes: each needs at least one", d.dir, d.Parts, tasks)
	}
	tables := make(map[string][]string, len(d.Files))
	for table := range d.Files {
		for part := d.Parts * task / tasks; part < d.Parts*(task+1)/tasks; part++ {
			file, err := d.find(table, part)
			if err != nil {
				return nil, err
			}
			tables[table] = append(tables[table], file)
		}
	}
	return tables, nil
}

// LostError says that no place has a file any more.
type LostError struct {
	Table  string
	Part   int
	Places []string
	Err    error // of the last place
}

func (e *LostError) Error() string {
	return fmt.Sprintf("dataset: part %d of %s is in none of %q: %v", e.Part, e.Table, e.Places, e.Err)
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// find returns a file of a part that is there, with the size that it should have. Parts
// begin to look in different places.
func (d *Dataset) find(table string, part int) (string, error) {
	var problem error
	for i := range d.Places {
		place := d.Places[(part+i)%len(d.Places)]
		if !filepath.IsAbs(place) {
			place = filepath.Join(d.dir, place)
		}
		file := File(place, table, part)
		info, err := os.Stat(file)
		if err == nil && info.Size() == d.Files[table][part] {
			return file, nil
		}
		if err == nil {
			err = fmt.Errorf("%s has %d bytes, want %d", file, info.Size(), d.Files[table][part])
		}
		problem = err
	}
	return "", &LostError{table, part, d.Places, problem}
}
