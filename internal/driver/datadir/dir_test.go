package datadir

// The data directory of a member: the vote that a process finds in it after a crash, and which users
// may read it.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
)

func openTestDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path, "g")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func save(t *testing.T, d *Dir, state string, sync bool) {
	t.Helper()
	if err := d.Save([]byte(state), sync); err != nil {
		t.Fatal(err)
	}
}

// reopen returns what a process finds that is started after a crash.
func reopen(t *testing.T, d *Dir) (string, error) {
	t.Helper()
	d.Close()
	next := openTestDir(t, d.path)
	state, err := next.load()
	next.Close()
	return string(state), err
}

// A state that is not on the disk never takes the place of one that is: whatever a crash
// leaves of it, the synced one is found.
func TestSavedStateSurvives(t *testing.T) {
	d := openTestDir(t, t.TempDir())
	save(t, d, "vote", true)
	synced, follow := filepath.Join(d.path, stateFile), filepath.Join(d.path, followFile)
	before, err := os.ReadFile(synced)
	if err != nil {
		t.Fatal(err)
	}
	save(t, d, "view", false)
	if after, _ := os.ReadFile(synced); !bytes.Equal(before, after) {
		t.Error("a state that is not synced has changed the file of one that is")
	}
	if state, err := reopen(t, d); state != "view" || err != nil {
		t.Errorf("found %q, %v", state, err)
	}
	whole, _ := os.ReadFile(follow)
	for length := range len(whole) { // what was written before the crash
		if err := os.WriteFile(follow, whole[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		if state, err := reopen(t, d); state != "vote" || err != nil {
			t.Fatalf("after %d of %d bytes: found %q, %v", length, len(whole), state, err)
		}
	}
	if err := os.Remove(follow); err != nil {
		t.Fatal(err)
	}
	for i := range before {
		damaged := bytes.Clone(before)
		damaged[i] ^= 1
		if err := os.WriteFile(synced, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if state, err := reopen(t, d); err == nil {
			t.Fatalf("byte %d is damaged, and %q is found", i, state)
		}
	}
}

// Without the synced state, which an operator removes if it is damaged, the process starts without
// a vote: a later copy that was not synced may lack promises.
func TestRemovedStateIsNoVote(t *testing.T) {
	d := openTestDir(t, t.TempDir())
	save(t, d, "vote", true)
	save(t, d, "view", false)
	if err := os.Remove(filepath.Join(d.path, stateFile)); err != nil {
		t.Fatal(err)
	}
	if state, err := reopen(t, d); state != "" || err != nil {
		t.Errorf("found %q, %v", state, err)
	}
}

// Files that others could read are made private, and a directory that they can change is
// refused.
func TestDirIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its modes say nothing")
	}
	path := t.TempDir()
	for _, name := range []string{lockFile, stateFile + ".new", followFile + ".new"} {
		writeLoose(t, filepath.Join(path, name)) // left by an earlier version, or a crash
	}
	d := openTestDir(t, path)
	save(t, d, "vote", true)
	save(t, d, "view", false)
	for _, name := range []string{lockFile, stateFile, followFile} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	d.Close()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, "g"); err == nil {
		t.Error("a directory that all users can change is accepted")
	}
}

func writeLoose(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
}

// What a process begins with is on the disk before it says anything: its place, and the nonce
// under which it asks for the next one.
func TestBeginIsSaved(t *testing.T) {
	d := openTestDir(t, t.TempDir())
	self := membership.Member{Identity: "a", Address: "a:1", Incarnation: 3, Nonce: 5}
	place := membership.NewSavedVote(self, membership.View{Number: 4, Slots: 1, Members: membership.MembersOf(self)},
		membership.Decisions{})
	for _, nonce := range []uint64{7, 0} {
		if err := d.Begin(place, nonce); err != nil {
			t.Fatal(err)
		}
		d.Close()
		d = openTestDir(t, d.path)
		if state, err := d.load(); err != nil || !bytes.Equal(state, place.Encode()) || d.next != nonce {
			t.Errorf("found %d bytes and nonce %d, %v; want the place and %d", len(state), d.next, err, nonce)
		}
	}
}

// The error for a directory that another process has locked names that process and nothing else.
func TestLockedDir(t *testing.T) {
	dir := t.TempDir()
	f, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := fmt.Sprintf("in use by process %d: end it, or choose another directory", os.Getpid())
	if _, err := Lock(dir); !errors.Is(err, ErrInUse) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
