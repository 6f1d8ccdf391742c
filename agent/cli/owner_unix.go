//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// SameOwner gives a file to the owner of another one.
func SameOwner(f *os.File, like fs.FileInfo) error {
	stat, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}
