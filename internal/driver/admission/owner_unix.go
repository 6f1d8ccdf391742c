//go:build unix

package admission

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// NoFollow is the flag with which a file is not opened through a symbolic link.
const NoFollow = syscall.O_NOFOLLOW

// checkOwner returns an error if a directory belongs to another user than this process's or root:
// its owner can put any file or link into it.
func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() || stat.Uid == 0 {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d, who can change its files, and this process is user %d: chown it, or choose another directory", path, stat.Uid, os.Geteuid())
}
