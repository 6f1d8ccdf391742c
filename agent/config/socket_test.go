//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The directory of a socket among everyone's temporary files must be the user's own.
func TestSharedSocketDir(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir, uid := sharedDir(), os.Geteuid()
	socket := filepath.Join(dir, "agent.sock")
	check := func(what string, err error, refused bool) {
		t.Helper()
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "choose another --socket") {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("no folder yet", CheckSocket(socket), false)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	check("its own folder", CheckSocket(socket), false)
	check("a folder of another user", checkPrivate(dir, uid+1), true)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	check("a folder for all", CheckSocket(socket), true)
	check("a folder that the user has chosen", CheckSocket(filepath.Join(temp, "agent.sock")), false)
	if err := os.Rename(dir, dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"-moved", dir); err != nil {
		t.Fatal(err)
	}
	check("a link", CheckSocket(socket), true)
}
