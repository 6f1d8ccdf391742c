package agent

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/transfer"
)

// takeFiles makes the agent take part in the copies of a group that it has entered.
func (a *Agent) takeFiles(g *pleach.Group) {
	s, err := transfer.New(g, transfer.Config{Dirs: a.config.Load().FileDirs, Logger: a.log})
	if err != nil {
		a.log.Error("no files are copied", "cause", err)
		return
	}
	a.files.Store(s)
}

// endFiles ends what copies there are.
func (a *Agent) endFiles() {
	if s := a.files.Swap(nil); s != nil {
		s.Close()
	}
}

// Copy implements [api.Agent]. The client sends the content, and not a name that the agent
// would open: so a client copies what it may read itself.
func (a *Agent) Copy(ctx context.Context, u api.Upload, report func(transfer.Progress)) (transfer.Result, error) {
	s := a.files.Load()
	if s == nil {
		return transfer.Result{}, api.ErrNotMember
	}
	if err := transfer.CheckFile(u.Name, u.Dir, u.Size); err != nil {
		return transfer.Result{}, api.BadRequest(err)
	}
	if u.Fleet {
		if _, err := a.inFleet(); err != nil {
			return transfer.Result{}, err
		}
	}
	spool, err := a.openSpool(u.Size)
	if err != nil {
		return transfer.Result{}, err
	}
	defer spool.Close()
	size, err := io.Copy(&spooler{file: spool, dir: a.spoolDir()}, u.Content)
	if err != nil {
		return transfer.Result{}, fmt.Errorf("the file has not arrived: %w", err)
	}
	file := transfer.File{Content: spool, Name: u.Name, Mode: u.Mode, Size: size, Rate: u.Rate}
	if u.Fleet {
		return a.copyToFleet(ctx, s, file, u, report)
	}
	return s.Copy(ctx, file, u.Dir, report)
}

// spoolDir is where files are kept on their way: next to the files of others, if this agent takes
// some, and otherwise where temporary files are.
func (a *Agent) spoolDir() string {
	if dirs := a.config.Load().FileDirs; len(dirs) > 0 {
		return dirs[0]
	}
	return os.TempDir()
}

// openSpool makes a file without a name, for a number of bytes that a client sends; -1: it is not
// known.
func (a *Agent) openSpool(size int64) (*os.File, error) {
	dir := a.spoolDir()
	if err := roomFor(dir, size); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, ".pleach-upload-*")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// A file on its way leaves a tenth of its disk free, and no more than spareBytes: the agent may save
// its vote there.
const (
	spareShare = 10
	spareBytes = 1 << 30
)

// roomFor returns an error if there is no room for a number of bytes in a directory.
func roomFor(dir string, size int64) error {
	free, all, known := diskSpace(dir)
	if spare := min(all/spareShare, spareBytes); known && free-max(size, 0) < spare {
		return &api.NoSpaceError{Dir: dir, Free: free, Spare: spare}
	}
	return nil
}

// spooler writes a file as long as there is room.
type spooler struct {
	file *os.File
	dir  string
}

// Write implements [io.Writer].
func (s *spooler) Write(p []byte) (int, error) {
	if err := roomFor(s.dir, int64(len(p))); err != nil {
		return 0, err
	}
	return s.file.Write(p)
}
