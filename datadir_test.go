package pleach

// The folder of a member: what is found in it after a crash, and which users get at it.

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func openTestFolder(t *testing.T, path string) *dataDir {
	t.Helper()
	d, err := (&Config{Group: "g", DataDir: path}).openDataDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

func save(t *testing.T, d *dataDir, state string, sync bool) {
	t.Helper()
	if err := d.save([]byte(state), sync); err != nil {
		t.Fatal(err)
	}
}

// reopen returns what a process finds that is started after a crash.
func reopen(t *testing.T, d *dataDir) (string, error) {
	t.Helper()
	d.close()
	next := openTestFolder(t, d.path)
	state, err := next.load()
	next.close()
	return string(state), err
}

// A state that is not on the disk never takes the place of one that is: whatever a crash
// leaves of it, the synced one is found.
func TestSavedStateSurvives(t *testing.T) {
	d := openTestFolder(t, t.TempDir())
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

// Files that others could read are closed to them, and a folder that they can change is
// refused.
func TestFolderIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its modes say nothing")
	}
	path := t.TempDir()
	for _, name := range []string{lockFile, stateFile + ".new", followFile + ".new"} {
		writeLoose(t, filepath.Join(path, name)) // left by an earlier version, or a crash
	}
	d := openTestFolder(t, path)
	save(t, d, "vote", true)
	save(t, d, "view", false)
	for _, name := range []string{lockFile, stateFile, followFile} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	d.close()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Config{Group: "g", DataDir: path}).openDataDir(); err == nil {
		t.Error("a folder that all users can change is taken")
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

// Detectors get a key where there is a secret: one that is not the secret, and another one
// for each group.
func TestDetectorKey(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	a, b := detectorKey(&Config{Group: "a", Secret: secret}), detectorKey(&Config{Group: "b", Secret: secret})
	if len(a) != 32 || bytes.Equal(a, b) || bytes.Equal(a, secret) || !bytes.Equal(a, detectorKey(&Config{Group: "a", Secret: secret})) {
		t.Errorf("the keys are %x and %x", a, b)
	}
	if k := detectorKey(&Config{Group: "a"}); k != nil {
		t.Errorf("without a secret it is %x", k)
	}
}
