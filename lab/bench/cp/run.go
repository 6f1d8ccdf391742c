package cp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// copyLimit is how long one copy may take.
const copyLimit = 10 * time.Minute

// order is a command to a process, and report its answer.
type (
	order struct {
		System string   `json:"system"`
		File   string   `json:"file"`
		Dirs   []string `json:"dirs"`  // by rank
		Peers  []string `json:"peers"` // addresses for bare connections, by rank
	}
	report struct {
		Address string        `json:"address,omitempty"` // for bare connections
		Took    time.Duration `json:"took,omitempty"`
		CPU     time.Duration `json:"cpu,omitempty"` // that the process has used so far
		Error   string        `json:"error,omitempty"`
	}
)

// usageOrder asks for the processor time.
const usageOrder = "usage"

// run is the processes of a benchmark.
type run struct {
	*Config
	folder    string
	file      string
	dirs      []string
	peers     []string
	processes []*launch.Process
	reports   []chan report // by rank
}

// Run measures all trials of a config. If ctx ends first, it returns what was measured until
// then, with ctx's error.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	folder, err := os.MkdirTemp(c.Dir, "pleach-bench-*")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(folder)
	r := &run{Config: &c, folder: folder, file: filepath.Join(folder, "file")}
	defer func() { launch.Stop(r.processes) }()
	if err := errors.Join(writeFile(r.file, c.Size), r.start(ctx)); err != nil {
		return Result{}, err
	}
	var trials []map[string]usage
	for trial := range c.Trials {
		used := make(map[string]usage)
		for i := range systems() {
			system := systems()[(trial+i)%len(systems())]
			used[system], err = r.measure(ctx, system)
			if err != nil {
				return c.result(trials), err
			}
			if c.Progress != nil {
				c.Progress(trial*len(systems()) + i + 1)
			}
		}
		trials = append(trials, used)
	}
	return c.result(trials), nil
}

// writeFile writes a file that does not compress.
func writeFile(name string, size int64) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	if _, err := io.CopyN(w, rand.NewChaCha8([32]byte{}), size); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// start starts the processes, and waits until all are members.
func (r *run) start(ctx context.Context) error {
	sockets, err := launch.Listen("bench", r.Members)
	if err != nil {
		return err
	}
	defer sockets.Close()
	for rank := range r.Members {
		dir := filepath.Join(r.folder, strconv.Itoa(rank))
		if err := os.Mkdir(dir, 0o777); err != nil {
			return err
		}
		r.dirs = append(r.dirs, dir)
		read, write := io.Pipe()
		p, err := sockets.Start(rank, launch.Command{
			Args: append(r.Command, dir), Input: true, Stdout: write,
			Stderr: os.Stderr,
		})
		if err != nil {
			return err
		}
		reports := make(chan report)
		go func() {
			defer close(reports)
			for lines := json.NewDecoder(read); ; {
				var re report
				if lines.Decode(&re) != nil {
					return
				}
				reports <- re
			}
		}()
		go func() {
			<-p.Ended()
			write.Close()
		}()
		r.processes, r.reports = append(r.processes, p), append(r.reports, reports)
	}
	for rank := range r.Members {
		first, err := r.await(ctx, rank, bench.Timeout)
		if err != nil {
			return err
		}
		r.peers = append(r.peers, first.Address)
	}
	return nil
}

// await waits for the next report of a rank.
func (r *run) await(ctx context.Context, rank int, limit time.Duration) (report, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case re, ok := <-r.reports[rank]:
		switch {
		case !ok:
			return re, bench.EndedError("cp", r.processes)
		case re.Error != "":
			return re, errors.New(re.Error)
		}
		return re, nil
	case <-ctx.Done():
		return report{}, ctx.Err()
	case <-timer.C:
		return report{}, fmt.Errorf("bench: rank %d: %w", rank, bench.ErrTimeout)
	}
}

// measure copies the file to all by one system.
func (r *run) measure(ctx context.Context, system string) (usage, error) {
	before, err := r.processorTime(ctx)
	if err != nil {
		return usage{}, err
	}
	took, err := r.copy(ctx, system)
	if err != nil {
		return usage{}, err
	}
	after, err := r.processorTime(ctx)
	return usage{took, after - before}, err
}

// processorTime is what all processes have used.
func (r *run) processorTime(ctx context.Context) (all time.Duration, err error) {
	for rank, p := range r.processes {
		if err := json.NewEncoder(p.Input()).Encode(order{System: usageOrder}); err != nil {
			return 0, err
		}
		re, err := r.await(ctx, rank, bench.Timeout)
		if err != nil {
			return 0, err
		}
		all += re.CPU
	}
	return all, nil
}

// copy copies the file to all, and removes the copies.
func (r *run) copy(ctx context.Context, system string) (time.Duration, error) {
	o := order{System: system, File: r.file, Dirs: r.dirs, Peers: r.peers}
	if err := json.NewEncoder(r.processes[0].Input()).Encode(o); err != nil {
		return 0, err
	}
	re, err := r.await(ctx, 0, copyLimit)
	if err != nil {
		return 0, fmt.Errorf("bench: %s: %w", system, err)
	}
	for _, dir := range r.dirs {
		name := filepath.Join(dir, filepath.Base(r.file))
		info, err := os.Stat(name)
		if err != nil {
			return 0, fmt.Errorf("bench: %s: %w", system, err)
		}
		if info.Size() != r.Size {
			return 0, fmt.Errorf("bench: %s: %s has %d bytes", system, name, info.Size())
		}
		if err := os.Remove(name); err != nil {
			return 0, err
		}
	}
	return re.Took, nil
}
