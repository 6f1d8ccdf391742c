package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/protocol"
)

// A measurement on real processes starts jobs: the same program several times, of which
// one process may die.

// jobTimeout is how long a job may take.
const jobTimeout = 3 * time.Minute

// jobGroup is the name of a job's group.
const jobGroup = "experiments"

// noVictim is the victim of a job in which no process dies.
const noVictim = -1

// job is a program that runs as several processes.
type job struct {
	Members int
	// Victim may die, unless it is noVictim.
	Victim int
	// Fatal makes the launcher kill all other processes when the victim has died, as
	// the schedulers of clusters do.
	Fatal   bool
	Plan    plan
	Command []string // see [Overheads]
}

// plan says what the processes of a job do: one of its fields is set.
type plan struct {
	Collectives *workload `json:",omitempty"`
	Query       *query    `json:",omitempty"`
	Sort        *sorting  `json:",omitempty"`
}

// program is what each process of a job does. The victim dies by die.
type program interface {
	run(ctx context.Context, w *pleach.World, die func()) (report any, err error)
}

func (p *plan) program() (program, error) {
	switch {
	case p.Collectives != nil:
		return p.Collectives, nil
	case p.Query != nil:
		return p.Query, nil
	case p.Sort != nil:
		return p.Sort, nil
	}
	return nil, errors.New("experiments: a plan without a program")
}

// runJob runs a job and returns the report of each process: nil from one that has died.
func runJob[Report any](ctx context.Context, j *job) ([]*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	sockets, err := launch.Listen(jobGroup, j.Members)
	if err != nil {
		return nil, err
	}
	defer sockets.Close()
	run, err := runners[Report](ctx, j, sockets)
	if err != nil {
		return nil, err
	}
	reports, errs := make([]*Report, j.Members), make([]error, j.Members)
	var all sync.WaitGroup
	for rank := range j.Members {
		all.Go(func() {
			report, err := run[rank](ctx)
			reports[rank] = report
			if err != nil && rank != j.Victim && !j.Fatal {
				errs[rank] = fmt.Errorf("rank %d: %w", rank, err)
			}
			if errs[rank] != nil || j.Fatal && rank == j.Victim {
				cancel()
			}
		})
	}
	all.Wait()
	return reports, errors.Join(errs...)
}

// runners returns, by rank, what runs a process of the job: within this one, or the
// command.
func runners[Report any](ctx context.Context, j *job, s *launch.Sockets) (run []func(context.Context) (*Report, error),
	err error,
) {
	for rank := range j.Members {
		if len(j.Command) == 0 {
			l := s.Take(rank)
			run = append(run, func(ctx context.Context) (*Report, error) {
				return inGoroutine[Report](ctx, j, rank, l,
					s.Addresses)
			})
			continue
		}
		one, err := inProcess[Report](j, s, rank)
		if err != nil {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			for _, started := range run {
				_, _ = started(ended) // killed
			}
			return nil, err
		}
		run = append(run, one)
	}
	return run, nil
}

// inGoroutine runs a process of the job within this one.
func inGoroutine[Report any](ctx context.Context, j *job, rank int, l *net.TCPListener,
	addresses []string,
) (*Report, error) {
	t, err := tcp.New(tcp.Config{
		Group: jobGroup, Rank: protocol.Rank(rank), Addresses: addresses, Listener: l,
		Open: true,
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	w, err := pleach.NewWorld(ctx, pleach.Config{
		Group: jobGroup, Addresses: addresses, Rank: rank, Network: pleach.Network{Transport: t},
	})
	if err != nil {
		return nil, err
	}
	p, err := j.Plan.program()
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	report, err := p.run(ctx, w, func() { _ = w.Abort() })
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return report.(*Report), nil
}

// inProcess starts a process of the job. It ends with its standard input, at the
// latest.
func inProcess[Report any](j *job, s *launch.Sockets, rank int) (func(context.Context) (*Report, error), error) {
	text, err := json.Marshal(j.Plan)
	if err != nil {
		return nil, err
	}
	var out, complaint bytes.Buffer
	p, err := s.Start(rank, launch.Command{
		Args: append(slices.Clone(j.Command), string(text)), Stdout: &out, Stderr: &complaint, Input: true,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*Report, error) {
		defer p.CloseInput()
		if err := p.Wait(ctx); err != nil {
			return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(complaint.Bytes()))
		}
		report := new(Report)
		return report, json.Unmarshal(out.Bytes(), report)
	}, nil
}

// ServeTask is a process of a job that a measurement starts; text is its last argument.
// It prints its report on the standard output. The victim kills itself, as in the
// thesis: "the according process is stopped by raising a SIGKILL signal" (§5.2.1).
func ServeTask(ctx context.Context, text string, input io.Reader, output io.Writer) error {
	var what plan
	if err := json.Unmarshal([]byte(text), &what); err != nil {
		return fmt.Errorf("experiments: no plan of a task: %w", err)
	}
	p, err := what.program()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, input) // nothing comes but its end
		cancel()
	}()
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	report, err := p.run(ctx, w, killMyself)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(report)
}

// killMyself does not return.
func killMyself() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}
