//go:build unix

package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// shell is a command that runs a script.
func shell(script string) Command {
	return Command{Program: "/bin/sh", Args: []string{"sh", "-c", script}}
}

func listen(t *testing.T, size int) *Sockets {
	t.Helper()
	s, err := Listen("test", size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func startShell(t *testing.T, s *Sockets, rank int, c Command) *Process {
	t.Helper()
	p, err := s.Start(rank, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A process reads its input, prints to a writer, and knows its rank.
func TestProcessIsFed(t *testing.T) {
	s := listen(t, 2)
	var out, complaint bytes.Buffer
	c := shell("cat; echo rank $PLEACH_RANK of $PLEACH_SIZE at $PLEACH_ADDRESSES >&2")
	c.Stdout, c.Stderr, c.Input = &out, &complaint, true
	p := startShell(t, s, 1, c)
	fmt.Fprint(p.Input(), "fed")
	p.CloseInput()
	if err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if want := "rank 1 of 2 at " + strings.Join(s.Addresses, ",") + "\n"; out.String() != "fed" ||
		complaint.String() != want {
		t.Errorf("printed %q and %q, want %q", out.String(), complaint.String(), want)
	}
}

// The process alone holds its socket, and one that is started again has none.
func TestSocketIsInheritedOnce(t *testing.T) {
	s := listen(t, 1)
	for _, want := range []string{"open", "closed"} {
		var out bytes.Buffer
		c := shell("if [ -e /dev/fd/3 ]; then echo open; else echo closed; fi")
		c.Stdout = &out
		if err := startShell(t, s, 0, c).Wait(t.Context()); err != nil || strings.TrimSpace(out.String()) != want {
			t.Errorf("%q, %v, want %s", out.String(), err, want)
		}
	}
	if s.Take(0) != nil {
		t.Error("the socket is still here")
	}
}

// A process ends with its input, and what ends otherwise says how.
func TestProcessEnds(t *testing.T) {
	s := listen(t, 4)
	c := shell("cat")
	c.Input = true
	processes := []*Process{startShell(t, s, 0, c), nil, startShell(t, s, 2, c)}
	if rank, _, ok := FirstEnded(processes); ok {
		t.Errorf("rank %d has ended before its input", rank)
	}
	Stop(processes)
	if _, p, ok := FirstEnded(processes); !ok || !p.State().Success() {
		t.Error("a process that was stopped has not exited with 0")
	}
	failed, ok := errors.AsType[*exec.ExitError](startShell(t, s, 1, shell("exit 7")).Wait(t.Context()))
	if !ok || failed.ExitCode() != 7 {
		t.Errorf("got %v", failed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := startShell(t, s, 3, shell("sleep 100")).Wait(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("a process outlives its context: %v", err)
	}
}

// What a process leaves behind is killed with it, and does not keep its output
// open.
func TestProcessLeavesNothingBehind(t *testing.T) {
	s := listen(t, 1)
	read, write, err := os.Pipe() // its end comes when no process holds it
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	var out bytes.Buffer
	c := shell("sleep 100 & echo started")
	c.Stdout, c.Files = &out, []*os.File{write}
	p := startShell(t, s, 0, c)
	write.Close()
	if err := p.Wait(t.Context()); err != nil || out.String() != "started\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	_ = read.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := read.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a process is left behind: %v", err)
	}
}

// A reader that is slow loses nothing of what a dead process has printed, and a
// pipe that another process holds open is not read for ever.
func TestDrain(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close() // held open
	text := bytes.Repeat([]byte("0123456789abcde\n"), 2048)
	if _, err := write.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(&drain{file: read})
	if !bytes.Equal(got, text) || !os.IsTimeout(err) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(text), err)
	}
}
