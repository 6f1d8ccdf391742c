//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// belongsTo reports whether a user owns a file.
func belongsTo(info fs.FileInfo, uid int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}
