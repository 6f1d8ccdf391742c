package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how much is done, on a terminal. In a pipe it is silent.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, things string, all int) progress {
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return progress{}
	}
	return progress{progressbar.NewOptions(all, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(things),
		progressbar.OptionSetWidth(30), progressbar.OptionShowCount())}
}

func (p progress) update(done int) {
	if p.bar != nil {
		_ = p.bar.Set(done) // An error means only that it is not seen.
	}
}

func (p progress) stop() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
