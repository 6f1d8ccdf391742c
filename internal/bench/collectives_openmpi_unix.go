//go:build unix

package bench

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
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed openmpi/collectives.c
var openMPIProgram []byte

// openMPI is a program that makes our rounds by Open MPI.
type openMPI struct{ dir, program, mpirun string }

// buildOpenMPI compiles it. Without says what is missing here.
func buildOpenMPI(ctx context.Context) (m *openMPI, without string, err error) {
	paths := make(map[string]string)
	for _, name := range []string{"mpicc", "mpirun", "mkfifo"} {
		if paths[name], err = exec.LookPath(name); err != nil {
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
		var said []byte
		if said, err = exec.CommandContext(ctx, paths["mpicc"], "-O2", "-o", m.program, source).CombinedOutput(); err != nil {
			err = fmt.Errorf("bench: mpicc: %w: %s", err, bytes.TrimSpace(said))
		}
	}
	if err != nil {
		m.remove()
		return nil, "", err
	}
	return m, "", nil
}

func (m *openMPI) remove() {
	if m != nil {
		_ = os.RemoveAll(m.dir)
	}
}

// mpiTeam is its processes.
type mpiTeam struct {
	dir    string
	pipes  []*os.File // by rank: what it is told
	mpirun *exec.Cmd
	lines  *bufio.Scanner
	output *os.File
	said   bytes.Buffer
	ended  chan struct{}
}

// start starts so many, over TCP on loopback as ours are.
func (m *openMPI) start(n int) (_ *mpiTeam, err error) {
	t := &mpiTeam{ended: make(chan struct{})}
	if t.dir, err = os.MkdirTemp(m.dir, "pipes-"); err != nil {
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
	t.mpirun = exec.Command(m.mpirun, "-n", strconv.Itoa(n), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
		"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", m.program, t.dir)
	t.mpirun.Stdout, t.mpirun.Stderr = write, &t.said
	t.mpirun.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process
	if err := t.mpirun.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = t.mpirun.Wait() // its state tells
		close(t.ended)
	}()
	return t, nil
}

// openPipes makes a pipe for each rank. They are opened for reading too, so as not
// to wait for who reads.
func (t *mpiTeam) openPipes(n int) error {
	for rank := range n {
		path := filepath.Join(t.dir, strconv.Itoa(rank))
		if said, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
			return fmt.Errorf("bench: mkfifo: %w: %s", err, said)
		}
		pipe, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		t.pipes = append(t.pipes, pipe)
	}
	return nil
}

// play implements [team].
func (t *mpiTeam) play(ctx context.Context, b block) ([]time.Duration, error) {
	for _, pipe := range t.pipes {
		if _, err := fmt.Fprintln(pipe, b.operation, b.size, b.rounds); err != nil {
			return nil, err
		}
	}
	defer context.AfterFunc(ctx, func() { _ = t.output.SetReadDeadline(time.Now()) })()
	var took []time.Duration
	for t.lines.Scan() && t.lines.Text() != "" {
		ns, err := strconv.ParseInt(t.lines.Text(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("bench: Open MPI says %q", t.lines.Text())
		}
		took = append(took, time.Duration(ns))
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(took) != b.rounds:
		return nil, fmt.Errorf("bench: Open MPI, %s of %d bytes: %d of %d rounds: %w", b.operation, b.size, len(took), b.rounds, t.cause())
	}
	return took, nil
}

// cause is why there is nothing more to hear.
func (t *mpiTeam) cause() error {
	select {
	case <-t.ended:
		return fmt.Errorf("mpirun has ended: %v: %s", t.mpirun.ProcessState, strings.TrimSpace(t.said.String()))
	case <-time.After(patience):
		return errors.Join(errTooLate, t.lines.Err())
	}
}

// close lets all end with their input.
func (t *mpiTeam) close() error {
	t.drop()
	select {
	case <-t.ended:
	case <-time.After(patience):
		_ = t.mpirun.Process.Signal(syscall.SIGTERM) // it ends those it has started
		select {
		case <-t.ended:
		case <-time.After(patience):
			_ = t.mpirun.Process.Kill()
			<-t.ended
		}
	}
	return t.output.Close()
}

func (t *mpiTeam) drop() {
	for _, pipe := range t.pipes {
		_ = pipe.Close()
	}
}
