package door

import (
	"fmt"
	"os"
	"runtime"
)

// CheckFolder returns an error if all users of the host can replace the files of a folder.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o002 != 0 {
		return fmt.Errorf("%s has mode %04o, and all users of this host can change its files: chmod o-w %s", path, mode, path)
	}
	return nil
}

// CheckFile returns an error if a file that keeps a secret is open to all users of the
// host. A file that cannot be looked at is for its reader to complain about.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" { // whose modes say nothing
		return nil
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return fmt.Errorf("%s has mode %04o, and all users of this host can read or change it: chmod o= %s", path, mode, path)
	}
	return nil
}
