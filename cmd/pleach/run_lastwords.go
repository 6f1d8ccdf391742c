package main

import (
	"errors"
	"os"
	"time"
)

// What a dead process has printed must all be read, however slow our own reader
// is, but a process that left its group may hold the pipe open for ever.
const (
	drain      = 500 * time.Millisecond
	lastPieces = 64 // of 4 KiB: a pipe holds 16
)

// lastWords reads a pipe. Its deadline says that the process has ended: from
// then on it goes on reading only while there is something to read.
type lastWords struct {
	file   *os.File
	pieces int
}

func (w *lastWords) Read(b []byte) (int, error) {
	n, err := w.file.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) || w.pieces == lastPieces {
		return n, err
	}
	w.pieces++
	_ = w.file.SetReadDeadline(time.Now().Add(drain))
	return w.file.Read(b)
}
