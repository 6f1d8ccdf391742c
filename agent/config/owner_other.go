//go:build !unix

package config

import "io/fs"

// belongsTo cannot be told here: each user has temporary files of their own.
func belongsTo(fs.FileInfo, int) bool { return true }
