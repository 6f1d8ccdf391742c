package admission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// CheckDir returns an error if other users of the host can replace the files of a directory:
// it belongs to one of them, or all of them can write to it.
func CheckDir(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o002 != 0 {
		return fmt.Errorf("%s has mode %04o, and all users of this host can change its files: chmod o-w %s", path, mode, path)
	}
	return checkOwner(path, info)
}

// privateName is the directory that a process makes in a volume that all users can write to.
const privateName = "pleach"

// PrivateDir returns the directory in which a process keeps its data, given the one that is
// configured. That is the same one, unless all users of the host can write to it, as to the
// volumes that the provisioners of kind and k3s make: then it is a directory in it that only
// this user can read or change, which is made if it is not there. Nothing else is written. A
// directory that belongs to another user is an error.
func PrivateDir(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil // it is made later, for this user alone
	case err != nil:
		return "", err
	case runtime.GOOS == "windows" || info.Mode().Perm()&0o002 == 0:
		return path, checkOwner(path, info)
	}
	if err := checkOwner(path, info); err != nil {
		return "", err
	}
	private := filepath.Join(path, privateName)
	if err := os.Mkdir(private, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	// Another user may have made it first, or a link in its place.
	made, err := os.Lstat(private)
	switch {
	case err != nil:
		return "", err
	case !made.IsDir():
		return "", fmt.Errorf("%s is not a directory: remove it", private)
	case made.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s has mode %04o: chmod 0700 %s, if its files are yours", private, made.Mode().Perm(), private)
	}
	return private, checkOwner(private, made)
}
