package tokens

import (
	"os"
	"path/filepath"
	"testing"
)

func open(t *testing.T, dir, service string) *Mark {
	t.Helper()
	m, err := Open(dir, service)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The floor of a process is above every token that an earlier process has covered, and services do
// not share marks.
func TestFloorIsAboveCoveredTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	last := uint64(0)
	for round := range 20 {
		m := open(t, dir, "shard/a")
		if floor := m.Floor(); floor <= last && round > 0 {
			t.Fatalf("round %d: floor %d after token %d", round, floor, last)
		}
		for _, step := range []uint64{1, 1, ahead / 2, 3 * ahead} {
			last = max(last, m.Floor()) + step
			if err := m.Cover(last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if floor := open(t, dir, "lease/a").Floor(); floor != 0 {
		t.Errorf("another service begins at %d", floor)
	}
}

// A damaged file is an error. A token that cannot be written down is one, unless the file covers it.
func TestMarkThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir, "s")
	if err := m.Cover(1); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(m.path+".new", 0o700); err != nil { // nothing can be written
		t.Fatal(err)
	}
	if err := m.Cover(ahead); err != nil {
		t.Errorf("a token below the mark: %v", err)
	}
	if err := m.Cover(ahead + 2); err == nil {
		t.Error("a token above the mark is covered, but the disk is full")
	}
	if err := os.WriteFile(m.path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, "s"); err == nil {
		t.Error("a damaged file is read")
	}
	if m, err := Open("", "s"); m != nil || err != nil || m.Floor() != 0 || m.Cover(1) != nil {
		t.Errorf("without a directory: %v, %v", m, err)
	}
}
