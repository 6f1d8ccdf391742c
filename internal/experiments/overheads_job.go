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
	"github.com/pleach-go/pleach/internal/launch"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// jobTimeout is how long a job may take.
const jobTimeout = 3 * time.Minute

// jobGroup is the name of a job's group.
const jobGroup = "overheads"

// runJob runs a workload as a job of its own, and returns the report of each
// process: nil from the victim.
func (d *workload) runJob(ctx context.Context, command []string) ([]*taskReport, error) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	sockets, err := launch.Listen(jobGroup, d.Members)
	if err != nil {
		return nil, err
	}
	defer sockets.Close()
	run, err := d.runners(ctx, sockets, command)
	if err != nil {
		return nil, err
	}
	reports, errs := make([]*taskReport, d.Members), make([]error, d.Members)
	var all sync.WaitGroup
	for r := range d.Members {
		all.Go(func() {
			if reports[r], errs[r] = run[r](ctx); r == d.Victim {
				reports[r], errs[r] = nil, nil
			} else if errs[r] != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, errs[r])
				cancel()
			}
		})
	}
	all.Wait()
	return reports, errors.Join(errs...)
}

// runners returns, by rank, what runs a process of the job: within this one, or
// the command.
func (d *workload) runners(ctx context.Context, s *launch.Sockets, command []string) (run []func(context.Context) (*taskReport, error), err error) {
	for rank := range d.Members {
		if len(command) == 0 {
			l := s.Take(rank)
			run = append(run, func(ctx context.Context) (*taskReport, error) { return d.inGoroutine(ctx, rank, l, s.Addresses) })
			continue
		}
		one, err := d.inProcess(s, rank, command)
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
func (d *workload) inGoroutine(ctx context.Context, rank int, l *net.TCPListener, addresses []string) (*taskReport, error) {
	t, err := tcp.New(tcp.Config{Group: jobGroup, Rank: protocol.Rank(rank), Addresses: addresses, Listener: l, Open: true})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	w, err := pleach.NewWorld(ctx, pleach.Config{Group: jobGroup, Addresses: addresses, Rank: rank, Transport: t})
	if err != nil {
		return nil, err
	}
	report, err := d.run(ctx, w, func() { _ = w.Close() })
	return report, errors.Join(err, w.Close())
}

// inProcess starts a process of the job. It ends with its standard input, at the
// latest.
func (d *workload) inProcess(s *launch.Sockets, rank int, command []string) (func(context.Context) (*taskReport, error), error) {
	plan, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var out, complaint bytes.Buffer
	p, err := s.Start(rank, launch.Command{
		Args: append(slices.Clone(command), string(plan)), Stdout: &out, Stderr: &complaint, Input: true,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*taskReport, error) {
		defer p.CloseInput()
		if err := p.Wait(ctx); err != nil {
			return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(complaint.Bytes()))
		}
		report := new(taskReport)
		return report, json.Unmarshal(out.Bytes(), report)
	}, nil
}

// ServeTask is a process of a job that [Overheads.Measure] starts; plan is its last
// argument. It prints its report on the standard output. The victim kills itself, as
// in the thesis: "the according process is stopped by raising a SIGKILL signal"
// (§5.2.1).
func ServeTask(ctx context.Context, plan string, input io.Reader, output io.Writer) error {
	var d workload
	if err := json.Unmarshal([]byte(plan), &d); err != nil {
		return fmt.Errorf("experiments: no plan of a task: %w", err)
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
	report, err := d.run(ctx, w, killMyself)
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
