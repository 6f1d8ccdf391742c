package main

import (
	"fmt"
	"io"
	"os"
)

// progress shows on a terminal how far the rounds are, and is silent elsewhere.
func progress(w io.Writer, members, rounds int) (show func(done int), clear func()) {
	f, ok := w.(*os.File)
	if !ok {
		return nil, func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil, func() {}
	}
	const clearLine = "\r\033[K"
	fmt.Fprintf(f, "%d members: starting", members)
	return func(done int) { fmt.Fprintf(f, "%s%d members: round %d of %d", clearLine, members, done, rounds) },
		func() { fmt.Fprint(f, clearLine) }
}
