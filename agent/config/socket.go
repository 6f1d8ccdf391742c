package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DefaultSocket is where an agent of this user listens, and where the commands look for it.
func DefaultSocket() string {
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case os.Geteuid() == 0:
		return "/run/pleach/agent.sock"
	case dir != "":
		return filepath.Join(dir, "pleach", "agent.sock")
	}
	return filepath.Join(sharedDir(), "agent.sock")
}

// sharedDir is the directory of this user's socket among the temporary files of all users.
func sharedDir() string { return filepath.Join(os.TempDir(), fmt.Sprintf("pleach-%d", os.Geteuid())) }

// CheckSocket refuses a socket whose directory another user may have made first, as tmux and
// ssh-agent do: an agent there would get this user's messages. Other directories are the user's
// choice.
func CheckSocket(path string) error {
	if dir := filepath.Dir(path); dir == sharedDir() {
		return checkPrivate(dir, os.Geteuid())
	}
	return nil
}

// checkPrivate returns an error unless a directory, if it exists, belongs to a user, and others
// cannot write to it.
func checkPrivate(dir string, uid int) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket: %w", err)
	case info.IsDir() && belongsTo(info, uid) && info.Mode().Perm()&0o022 == 0:
		return nil
	}
	return fmt.Errorf("socket: the directory %s is not this user's alone: remove it, or choose another --socket (PLEACH_SOCKET)", dir)
}
