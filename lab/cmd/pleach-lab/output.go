package main

import (
	"bytes"
	"cmp"
	"io"
	"os"

	"github.com/pleach-go/pleach/agent/cli"
)

// savePicture draws first and creates the file only if that worked.
func savePicture(name string, draw func(io.Writer) error) error {
	var picture bytes.Buffer
	if err := draw(&picture); err != nil {
		return cli.Failure(err)
	}
	return cli.Failure(os.WriteFile(name, picture.Bytes(), 0o666))
}

// writeFile creates a file and lets write fill it, piece by piece. A disk that
// is full may show only when the file is closed.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = cli.Buffered(f, write)
	return cmp.Or(err, f.Close())
}
