package collectives

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// pleachRunner is processes that call the collectives of Pleach.
type pleachRunner struct {
	processes []*launch.Process
	reports   []*os.File // by rank: what it has measured
}

func newPleachRunner(ctx context.Context, command []string, n int) (_ *pleachRunner, err error) {
	sockets, err := launch.Listen("bench", n)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer sockets.Close()
	t := &pleachRunner{}
	for rank := range n {
		if err := t.start(sockets, rank, command); err != nil {
			return nil, errors.Join(fmt.Errorf("bench: %w", err), t.close())
		}
	}
	// All have met before anything is measured.
	if _, err := t.run(ctx, block{testcase{"alltoall", 8}, warmUp, modeReport}); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *pleachRunner) start(s *launch.Sockets, rank int, command []string) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	t.reports = append(t.reports, in)
	p, err := s.Start(rank, launch.Command{
		Args: command, Files: []*os.File{out}, Stderr: os.Stderr, Input: true,
		Env: []string{"GOMAXPROCS=1"}, // one processor each, as a rank of an MPI program has
	})
	if err == nil {
		t.processes = append(t.processes, p)
	}
	return err
}

// run implements [runner].
func (t *pleachRunner) run(ctx context.Context, b block) (m measured, err error) {
	for rank, p := range t.processes {
		if _, err := fmt.Fprintln(p.Input(), b.operation, b.size, b.rounds, b.mode); err != nil {
			return m, fmt.Errorf("bench: pleach, rank %d: %w", rank, err)
		}
	}
	stop := context.AfterFunc(ctx, func() {
		for _, in := range t.reports {
			_ = in.SetReadDeadline(time.Now()) // it is over
		}
	})
	defer stop()
	m.took = make([]time.Duration, b.rounds)
	for rank, in := range t.reports {
		report := make([]int64, b.rounds+1)
		if err := binary.Read(in, binary.LittleEndian, report); err != nil {
			if ctx.Err() != nil {
				return m, ctx.Err()
			}
			return m, errors.Join(fmt.Errorf("bench: pleach, %s of %d bytes: no report of rank %d: %w", b.operation, b.size,
				rank, err), bench.EndedError("pleach", t.processes))
		}
		for i := range m.took {
			m.took[i] = max(m.took[i], time.Duration(report[i]))
		}
		m.processor += time.Duration(report[b.rounds])
	}
	return m, nil
}

func (t *pleachRunner) close() error {
	launch.Stop(t.processes)
	for _, in := range t.reports {
		_ = in.Close()
	}
	return nil
}

// Serve is a process that [Run] starts. It runs the blocks that its standard input
// names until that ends, and reports the times.
func Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := newMember(ctx)
	if err != nil {
		return err
	}
	commands := make(chan string)
	go func() {
		defer cancel() // whatever it is doing
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	report := bench.InheritedPipe()
	for {
		var line string
		select {
		case line = <-commands:
		case <-ctx.Done():
			return nil // without closing, which would wait for other members, and they end too
		}
		var b block
		if _, err := fmt.Sscan(line, &b.operation, &b.size, &b.rounds, &b.mode); err != nil {
			return fmt.Errorf("bench: %q: %w", line, err)
		}
		took, err := m.run(ctx, b)
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
