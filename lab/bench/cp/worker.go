package cp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/lab/bench"
)

// worker is a process that has the file, or gets it.
type worker struct {
	dir     string
	group   *pleach.Group
	service atomic.Pointer[transfer.Service]
}

// Serve is a process that [Run] starts. It receives files in a directory, and sends one
// when it gets an order.
func Serve(ctx context.Context, dir string) error {
	w := &worker{dir: dir}
	out := json.NewEncoder(os.Stdout)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	go w.serveBare(listener)
	w.group, err = pleach.Start(ctx, pleach.Config{
		Limits: pleach.Limits{SegmentSize: transfer.SegmentSize},
		OnMessage: func(m pleach.Message, _ error) {
			if s := w.service.Load(); s != nil && m.Topic == transfer.Topic {
				s.Receive(m)
			}
		},
	})
	if err != nil {
		return err
	}
	defer w.group.Close()
	s, err := transfer.New(w.group, transfer.Config{Dirs: []string{dir}})
	if err != nil {
		return err
	}
	defer s.Close()
	w.service.Store(s)
	if err := out.Encode(report{Address: listener.Addr().String()}); err != nil {
		return err
	}
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		if err := orders.Decode(&o); err != nil {
			return nil // the benchmark has ended
		}
		began := time.Now()
		err := w.obey(ctx, &o)
		re := report{Took: time.Since(began), CPU: bench.ProcessorTime()}
		if err != nil {
			re.Error = err.Error()
		}
		if err := out.Encode(re); err != nil {
			return err
		}
	}
}

// obey sends a file to all processes, if the order says so.
func (w *worker) obey(ctx context.Context, o *order) error {
	switch o.System {
	case usageOrder:
		return nil
	case chainSystem:
		return sendBare(o.File, w.dir, o.Peers[1:])
	case flatSystem:
		if err := sendBare(o.File, w.dir, nil); err != nil {
			return err
		}
		for _, peer := range o.Peers[1:] {
			if err := sendBare(o.File, "", []string{peer}); err != nil {
				return err
			}
		}
		return nil
	}
	r, err := w.service.Load().CopyFile(ctx, o.File, ".", nil)
	switch {
	case err != nil:
		return err
	case r.Count(transfer.Done) != len(o.Dirs) || r.Broadcast != r.Chunks || r.Sent > 0:
		return fmt.Errorf("bench: not one broadcast of the file: %+v", r)
	}
	return nil
}

// target is a file that is written under a temporary name.
type target struct {
	*os.File
	name string
}

func create(dir, name string) (*target, error) {
	name = filepath.Join(dir, filepath.Base(name))
	file, err := os.Create(name + ".part")
	return &target{file, name}, err
}

// publish gives the file its name.
func (t *target) publish() error {
	if err := t.Sync(); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return os.Rename(t.File.Name(), t.name)
}
