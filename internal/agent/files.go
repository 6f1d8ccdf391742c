package agent

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/internal/transfer"
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
	spool, err := a.openSpool()
	if err != nil {
		return transfer.Result{}, err
	}
	defer spool.Close()
	size, err := io.Copy(spool, u.Content)
	if err != nil {
		return transfer.Result{}, fmt.Errorf("the file has not arrived: %w", err)
	}
	file := transfer.File{Content: spool, Name: u.Name, Mode: u.Mode, Size: size, Rate: u.Rate}
	if u.Fleet {
		return a.copyToFleet(ctx, s, file, u, report)
	}
	return s.Copy(ctx, file, u.Dir, report)
}

// openSpool makes a file without a name, for what a client sends: beside the files of others,
// if this agent takes some, and otherwise where temporary files are.
func (a *Agent) openSpool() (*os.File, error) {
	dir := ""
	if dirs := a.config.Load().FileDirs; len(dirs) > 0 {
		dir = dirs[0]
	}
	file, err := os.CreateTemp(dir, ".pleach-upload-*")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}
