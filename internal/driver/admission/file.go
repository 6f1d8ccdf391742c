package admission

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// CheckFile returns an error if a file that keeps a secret is open to all users of the
// host. A file that cannot be looked at is for its reader to complain about.
func CheckFile(path string) error {
	if mode := modeOf(path); mode&0o007 != 0 {
		return fmt.Errorf("%s has mode %04o, and all users of this host can read or change it: chmod o= %s", path, mode, path)
	}
	return nil
}

// CheckWriters returns an error if all users of the host can change a file that this process
// obeys, such as one that names commands.
func CheckWriters(path string) error {
	if mode := modeOf(path); mode&0o002 != 0 {
		return fmt.Errorf("%s has mode %04o, and all users of this host can change it: chmod o-w %s", path, mode, path)
	}
	return nil
}

// modeOf returns the permissions of a file, or zero if they are not known.
func modeOf(path string) fs.FileMode {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || !info.Mode().IsRegular() { // modes say nothing
		return 0
	}
	return info.Mode().Perm()
}
