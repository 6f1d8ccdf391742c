package transfer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A rollout of a file keeps the one from before, and Restore brings it back, or removes the file if there
// was none. It may be called again.
func TestInstallAndRestore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "etc", "f")
	content := func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			return "none"
		}
		return string(b)
	}
	local := func(id string) *Local { return &Local{Dirs: []string{dir}, Dir: "etc", Name: "f", Mode: 0o640, ID: id} }
	if path := local("a").Path(); path != file {
		t.Errorf("path %s", path)
	}
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{local("a").Restore, "none"}, // it was not installed
		{func() error { return local("a").Install([]byte("one")) }, "one"},
		{local("a").Restore, "none"},
		{local("a").Restore, "none"},
		{func() error { return local("b").Install([]byte("two")) }, "two"},
		{func() error { return local("c").Install([]byte("three")) }, "three"},
		{local("b").Restore, "three"}, // another rollout has replaced it
		{local("c").Restore, "two"},
		{local("c").Restore, "two"},
	} {
		if err := step.do(); err != nil || content() != step.want {
			t.Errorf("got %s, %v, want %s", content(), err, step.want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "etc"))
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", slices.Clone(entries), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	for _, wrong := range []*Local{
		{Dirs: nil, Dir: "etc", Name: "f"},
		{Dirs: []string{dir}, Dir: "../x", Name: "f"},
		{Dirs: []string{dir}, Dir: "etc", Name: "../f"},
	} {
		if wrong.Install(nil) == nil || wrong.Restore() == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}
