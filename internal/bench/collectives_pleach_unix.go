//go:build unix

package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// pleachTeam is processes that call our collectives.
type pleachTeam struct {
	processes []*memberProcess
	reports   []*os.File // by rank: what it has measured
}

func newPleachTeam(ctx context.Context, command []string, n int) (_ *pleachTeam, err error) {
	listeners, addresses, err := (&plan{members: n}).listen()
	if err != nil {
		return nil, err
	}
	defer closeListeners(listeners)
	t := &pleachTeam{}
	for rank, l := range listeners {
		socket, err := l.File()
		if err == nil {
			// One processor each, as a rank of an MPI program has.
			err = t.start(command, append(environment(rank, addresses), "GOMAXPROCS=1"), socket)
			socket.Close()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: cannot start rank %d: %w", rank, err), t.close())
		}
	}
	closeListeners(listeners)
	// All have met before anything is measured.
	if _, err := t.play(ctx, block{matter{"alltoall", 8}, trial, strengthPlain}); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *pleachTeam) start(command, env []string, socket *os.File) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	t.reports = append(t.reports, in)
	p, err := startProcess(command, env, socket, out)
	if err == nil {
		t.processes = append(t.processes, p)
	}
	return err
}

// play implements [team].
func (t *pleachTeam) play(ctx context.Context, b block) ([]time.Duration, error) {
	for rank, p := range t.processes {
		if _, err := fmt.Fprintln(p.input, b.operation, b.size, b.rounds, b.strength); err != nil {
			return nil, fmt.Errorf("bench: pleach, rank %d: %w", rank, err)
		}
	}
	stop := context.AfterFunc(ctx, func() {
		for _, in := range t.reports {
			_ = in.SetReadDeadline(time.Now()) // it is over
		}
	})
	defer stop()
	longest := make([]time.Duration, b.rounds)
	for rank, in := range t.reports {
		took := make([]int64, b.rounds)
		if err := binary.Read(in, binary.LittleEndian, took); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, errors.Join(fmt.Errorf("bench: pleach, %s of %d bytes: rank %d says nothing: %w", b.operation, b.size, rank, err), death("pleach", t.processes))
		}
		for i, d := range took {
			longest[i] = max(longest[i], time.Duration(d))
		}
	}
	return longest, nil
}

func (t *pleachTeam) close() error {
	endProcesses(t.processes)
	for _, in := range t.reports {
		_ = in.Close()
	}
	return nil
}

// ServeCollectives is a process that [MeasureCollectives] starts. It does what it
// is told on its standard input until that ends, and reports the times.
func ServeCollectives(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := newCollectiveMember(ctx)
	if err != nil {
		return err
	}
	commands := make(chan string)
	go func() {
		defer cancel() // the end, whatever it is doing
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	report := os.NewFile(reportFile, "report")
	for {
		var line string
		select {
		case line = <-commands:
		case <-ctx.Done():
			return nil // and not closing: others are ending too, and would be waited for
		}
		var b block
		if _, err := fmt.Sscan(line, &b.operation, &b.size, &b.rounds, &b.strength); err != nil {
			return fmt.Errorf("bench: %q: %w", line, err)
		}
		took, err := m.play(ctx, b)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := binary.Write(report, binary.LittleEndian, took); err != nil {
			return err
		}
	}
}
