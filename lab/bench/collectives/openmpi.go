package collectives

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

//go:embed openmpi/collectives.c
var openMPIProgram []byte

// openMPI is a program that runs the same rounds by Open MPI.
type openMPI struct{ dir, program, mpirun string }

// buildOpenMPI compiles the program. If Open MPI is missing, without says what.
func buildOpenMPI(ctx context.Context) (m *openMPI, without string, err error) {
	paths := make(map[string]string)
	for _, name := range []string{"mpicc", "mpirun", "mkfifo"} {
		paths[name], err = exec.LookPath(name)
		if err != nil {
			return nil, fmt.Sprintf("there is no %s here (Debian: apt install openmpi-bin libopenmpi-dev)", name), nil
		}
	}
	version, err := exec.CommandContext(ctx, paths["mpirun"], "--version").Output()
	if err != nil || !bytes.Contains(version, []byte("Open MPI")) {
		return nil, "mpirun here is not Open MPI's", nil
	}
	dir, err := os.MkdirTemp("", "pleach-openmpi-")
	if err != nil {
		return nil, "", err
	}
	m = &openMPI{dir, filepath.Join(dir, "collectives"), paths["mpirun"]}
	source := m.program + ".c"
	if err = os.WriteFile(source, openMPIProgram, 0o600); err == nil {
		var output []byte
		output, err = exec.CommandContext(ctx, paths["mpicc"], "-O2", "-o", m.program, source).CombinedOutput()
		if err != nil && ctx.Err() == nil {
			m.remove() // Usually mpi.h is missing.
			return nil, fmt.Sprintf("mpicc cannot compile (Debian: apt install libopenmpi-dev): %s", bytes.TrimSpace(output)),
				nil
		}
	}
	if err != nil {
		m.remove()
		return nil, "", err
	}
	return m, "", nil
}

// systems are those that it is measured as: none if there is no Open MPI.
func (m *openMPI) systems() []string {
	if m == nil {
		return nil
	}
	return []string{systemOpenMPI, systemOpenMPIShared}
}

func (m *openMPI) remove() {
	if m != nil {
		_ = os.RemoveAll(m.dir)
	}
}

// mpiRunner is its processes.
type mpiRunner struct {
	dir    string
	pipes  []*os.File // by rank: its blocks
	mpirun *launch.Process
	lines  *bufio.Scanner
	output *os.File
	stderr bytes.Buffer
}

// networks are what Open MPI runs over, by system: TCP on loopback, or shared memory, which
// is its default on one host.
var networks = map[string][]string{
	systemOpenMPI:       {"--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"},
	systemOpenMPIShared: {"--mca", "btl", "vader,self"},
}

// start starts so many ranks of a system.
func (m *openMPI) start(system string, n int) (_ *mpiRunner, err error) {
	t := &mpiRunner{}
	t.dir, err = os.MkdirTemp(m.dir, "pipes-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.drop()
		}
	}()
	if err := t.openPipes(n); err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	t.output, t.lines = read, bufio.NewScanner(read)
	t.mpirun, err = launch.Start(launch.Command{
		Program: m.mpirun, Stdout: write, Stderr: &t.stderr,
		Args: slices.Concat(
			[]string{
				m.mpirun, "-n", strconv.Itoa(n), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--mca",
				"pml", "ob1",
			},
			networks[system], []string{m.program, t.dir},
		),
	})
	return t, err
}

// openPipes makes a pipe for each rank. Pipes are opened for reading too, so that
// opening does not wait for the rank.
func (t *mpiRunner) openPipes(n int) error {
	for rank := range n {
		path := filepath.Join(t.dir, strconv.Itoa(rank))
		if output, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
			return fmt.Errorf("bench: mkfifo: %w: %s", err, output)
		}
		pipe, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		t.pipes = append(t.pipes, pipe)
	}
	return nil
}

// run implements [runner]. The ranks report the rounds and then the processor time.
func (t *mpiRunner) run(ctx context.Context, b block) (m measured, err error) {
	for _, pipe := range t.pipes {
		if _, err := fmt.Fprintln(pipe, b.operation, b.size, b.rounds); err != nil {
			return m, err
		}
	}
	defer context.AfterFunc(ctx, func() { _ = t.output.SetReadDeadline(time.Now()) })()
	var report []time.Duration
	for len(report) <= b.rounds && t.lines.Scan() {
		ns, err := strconv.ParseInt(t.lines.Text(), 10, 64)
		if err != nil {
			return m, fmt.Errorf("bench: Open MPI says %q", t.lines.Text())
		}
		report = append(report, time.Duration(ns))
	}
	switch {
	case ctx.Err() != nil:
		return m, ctx.Err()
	case len(report) <= b.rounds:
		return m, fmt.Errorf("bench: Open MPI, %s of %d bytes: %d of %d rounds: %w", b.operation, b.size, len(report),
			b.rounds, t.cause())
	}
	return measured{report[:b.rounds], report[b.rounds]}, nil
}

// cause is why no more rounds are reported.
func (t *mpiRunner) cause() error {
	select {
	case <-t.mpirun.Ended():
		return fmt.Errorf("mpirun has ended: %v: %s", t.mpirun.State(), strings.TrimSpace(t.stderr.String()))
	case <-time.After(bench.Timeout):
		return errors.Join(bench.ErrTimeout, t.lines.Err())
	}
}

// close ends the input of all ranks, which ends them.
func (t *mpiRunner) close() error {
	t.drop()
	select {
	case <-t.mpirun.Ended():
	case <-time.After(bench.Timeout):
		t.mpirun.Terminate() // it ends the ranks that it has started
		t.mpirun.Stop()
	}
	return t.output.Close()
}

func (t *mpiRunner) drop() {
	for _, pipe := range t.pipes {
		_ = pipe.Close()
	}
}
