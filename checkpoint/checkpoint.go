// Package checkpoint keeps the state of a job in a file, so that it survives the death of all
// its processes. Takeover and replacements keep a job going as long as one process lives; a
// checkpoint is for the rest: a power failure, the end of an allocation, a new version.
//
//	state := State{Model: zero}
//	found, err := checkpoint.Load(ctx, world, "/shared/job.checkpoint", &state)
//	for state.Step < steps {
//		…
//		err = checkpoint.Save(ctx, world, "/shared/job.checkpoint", state)
//	}
//
// On several hosts the file is on a file system that they share.
package checkpoint

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pleach-go/pleach/collective"
)

// Save writes the state, which all processes have alike, to a file. It is a collective call:
// one process writes, and another one does if it dies meanwhile. The file has the old state or
// the new one at all times, also when the host fails.
func Save[T any](ctx context.Context, c collective.Communicator, name string, state T) error {
	return collective.Once(ctx, c, func(context.Context) error {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(state); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		return replace(name, b.Bytes())
	})
}

// replace writes a file under another name, and renames it when it is on the disk.
func replace(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer os.Remove(f.Name()) // unless it was renamed
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if folder, err := os.Open(filepath.Dir(name)); err == nil {
		_ = folder.Sync() // not every system can
		folder.Close()
	}
	return nil
}

// Load reads the state that Save has written, and reports whether there is any. Without, it
// leaves state as it is. It is a collective call, made before the first Save: all processes get
// what the process of task 0 has read.
func Load[T any](ctx context.Context, c collective.Communicator, name string, state *T) (found bool, err error) {
	content, err := os.ReadFile(name) // once, as a later Save changes it
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("checkpoint: %w", err)
	}
	content, err = collective.Broadcast(ctx, c, 0, content,
		collective.Restore(func(context.Context, int) ([]byte, error) { return content, nil }))
	if err != nil || len(content) == 0 {
		return false, err
	}
	if err := gob.NewDecoder(bytes.NewReader(content)).Decode(state); err != nil {
		return false, fmt.Errorf("checkpoint: %s: %w", name, err)
	}
	return true, nil
}
