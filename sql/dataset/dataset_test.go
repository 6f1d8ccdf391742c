package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// newDataset writes a dataset whose files have their place as content.
func newDataset(t *testing.T) (*Dataset, string) {
	t.Helper()
	dir := t.TempDir()
	d := &Dataset{Parts: 5, Places: []string{"a", "b"}, Files: map[string][]int64{"t": {1, 1, 1, 1, 1}}}
	for _, place := range d.Places {
		for part := range d.Parts {
			name := File(filepath.Join(dir, place), "t", part)
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(place), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Save(dir); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return opened, dir
}

// Tasks have all parts, each one once.
func TestPartsOfTasks(t *testing.T) {
	d, _ := newDataset(t)
	for tasks := 1; tasks <= d.Parts; tasks++ {
		seen := make(map[string]bool)
		for task := range tasks {
			tables, err := d.Tables(t.Context(), task, tasks)
			if err != nil || len(tables["t"]) == 0 {
				t.Fatal(tables, err)
			}
			for _, file := range tables["t"] {
				seen[filepath.Base(file)] = true
			}
		}
		if len(seen) != d.Parts {
			t.Errorf("%d tasks have %d parts", tasks, len(seen))
		}
	}
	if _, err := d.Tables(t.Context(), 0, d.Parts+1); err == nil {
		t.Error("a task has no part, and no error")
	}
}

// A part is read from another place if its file is missing or short.
func TestLostPlaces(t *testing.T) {
	d, dir := newDataset(t)
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	for part := range d.Parts {
		file, err := d.find("t", part)
		if want := File(filepath.Join(dir, "b"), "t", part); err != nil || file != want {
			t.Errorf("part %d is in %s, %v, want %s", part, file, err, want)
		}
	}
	if err := os.Truncate(File(filepath.Join(dir, "b"), "t", 3), 0); err != nil {
		t.Fatal(err)
	}
	_, err := d.Tables(t.Context(), 0, 1)
	lost, ok := errors.AsType[*LostError](err)
	if !ok || lost.Part != 3 {
		t.Errorf("%v, want that part 3 is lost", err)
	}
}
