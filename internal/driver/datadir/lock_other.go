//go:build !unix

package datadir

import (
	"errors"
	"os"
)

// lock fails: two processes that share a directory could vote twice.
func lock(*os.File) error { return errors.New("this system has no lock for it") }
