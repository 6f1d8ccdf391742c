package admission

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A volume of mode 0777 has a private directory inside, and nothing else is written to it. Links
// and directories of other users in its place are refused (cases 82 and 97).
func TestPrivateDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing")
	}
	volume := func(mode os.FileMode) string {
		dir := filepath.Join(t.TempDir(), "volume")
		if err := os.Mkdir(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, dir := range []string{volume(0o700), volume(0o755), filepath.Join(t.TempDir(), "new")} {
		if got, err := PrivateDir(dir); err != nil || got != dir {
			t.Errorf("%s: %s, %v", dir, got, err)
		}
	}
	shared := volume(0o777)
	for range 2 { // it is made, and used again
		got, err := PrivateDir(shared)
		if err != nil || got != filepath.Join(shared, "pleach") || CheckDir(got) != nil {
			t.Errorf("a volume of mode 0777: %s, %v, %v", got, err, CheckDir(got))
		}
	}
	if files, err := os.ReadDir(shared); err != nil || len(files) != 1 {
		t.Errorf("the volume has %v, %v", files, err)
	}
	linked := volume(0o777)
	if err := os.Symlink(t.TempDir(), filepath.Join(linked, "pleach")); err != nil {
		t.Fatal(err)
	}
	if got, err := PrivateDir(linked); err == nil {
		t.Errorf("a link is followed to %s", got)
	}
	loose := volume(0o777)
	if err := os.Mkdir(filepath.Join(loose, "pleach"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := PrivateDir(loose); err == nil {
		t.Errorf("%s has mode 0755, and is taken", got)
	}
	if os.Geteuid() != 0 {
		return // the rest needs another user
	}
	foreign := volume(0o755)
	if err := os.Chown(foreign, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, check := range []func(string) error{CheckDir, func(path string) error {
		_, err := PrivateDir(path)
		return err
	}} {
		if err := check(foreign); err == nil || !strings.Contains(err.Error(), "user 65534") {
			t.Errorf("a directory of another user: %v", err)
		}
	}
}
