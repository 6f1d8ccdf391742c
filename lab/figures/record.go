// Package figures keeps what was measured, so that a figure in a page is one of a record and
// not one of memory.
//
// A record is a file docs/figures/PART.json: tables, each with the commands that measured
// it, the date, the commit and the machine. A page names tables between two marks, and what
// stands between them is written from the record ([Update]); a test compares ([Stale]).
// Package measure, below this one, makes records.
package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Directory has the records, below the root of the repository.
const Directory = "docs/figures"

// Table is what was measured together. Its cells are as they are printed.
type Table struct {
	Name     string     `json:"name"`
	Date     string     `json:"date"`
	Commit   string     `json:"commit"`
	Machine  string     `json:"machine"`
	Commands []string   `json:"commands"`
	Columns  []string   `json:"columns"`
	Rows     [][]string `json:"rows"`
}

// Record is all tables of a part.
type Record struct {
	Tables []Table `json:"tables"`
}

// Put replaces the tables of the same names, or adds them.
func (r *Record) Put(tables ...Table) {
	for _, t := range tables {
		if i := slices.IndexFunc(r.Tables, func(old Table) bool { return old.Name == t.Name }); i >= 0 {
			r.Tables[i] = t
		} else {
			r.Tables = append(r.Tables, t)
		}
	}
}

// Read returns the record of a part, which is empty if nothing of it was measured.
func Read(fsys fs.FS, part string) (Record, error) {
	var r Record
	name := path.Join(Directory, part+".json")
	text, err := fs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, r.check(name)
}

// check refuses tables that do not say where they are from, or whose rows do not fit.
func (r *Record) check(name string) error {
	for _, t := range r.Tables {
		if t.Date == "" || t.Commit == "" || t.Machine == "" || len(t.Commands) == 0 {
			return fmt.Errorf("%s: table %s lacks date, commit, machine or commands", name, t.Name)
		}
		for _, row := range t.Rows {
			if len(row) != len(t.Columns) {
				return fmt.Errorf("%s: table %s has %d columns, and a row of %d: %s", name, t.Name, len(t.Columns), len(row),
					strings.Join(row, " | "))
			}
		}
	}
	return nil
}

// Write keeps the record of a part below the root of the repository.
func (r *Record) Write(root, part string) error {
	name := path.Join(root, Directory, part+".json")
	if err := r.check(name); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
