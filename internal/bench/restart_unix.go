//go:build unix

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// jobLimit is how long one job may take beyond what it computes.
const jobLimit = 2 * time.Minute

// MeasureRestart measures. If ctx ends first, it returns what was measured until
// then, with ctx's error.
func MeasureRestart(ctx context.Context, c Restart) (RestartResult, error) {
	if err := c.Check(); err != nil {
		return RestartResult{}, err
	}
	dir, err := os.MkdirTemp("", "pleach-bench-*")
	if err != nil {
		return RestartResult{}, err
	}
	defer os.RemoveAll(dir)
	dice := rand.New(rand.NewPCG(c.Seed, 0))
	var trials [][]time.Duration
	for trial := range c.Trials {
		times, err := c.trial(ctx, dice, trial, dir)
		if err != nil {
			return c.result(trials), err
		}
		trials = append(trials, times)
	}
	return c.result(trials), nil
}

// trial runs the job once in each way, with the same victim at the same part of
// the job, and sees to it that the result is always the same.
func (c *Restart) trial(ctx context.Context, dice *rand.Rand, trial int, dir string) (times []time.Duration, err error) {
	victim, part := dice.IntN(c.Members), dice.Float64()
	var clean *finished
	for i, w := range ways() {
		load := workload{Rounds: c.Rounds, Elements: c.Elements, Compute: c.Compute, Serial: w.serial, Every: c.Every}
		if w.checkpoint {
			load.Checkpoint = filepath.Join(dir, fmt.Sprint("checkpoint-", trial))
		}
		s := struck{victim: -1}
		if w.kill {
			s = struck{victim, time.Duration(part * float64(clean.worked)), w.again}
		}
		f, err := c.run(ctx, load, s)
		switch {
		case err != nil:
			return nil, fmt.Errorf("bench: %s, rank %d killed after %v: %w", w.name, s.victim, s.after, err)
		case clean == nil:
			clean = f
		case f.result != clean.result:
			return nil, fmt.Errorf("bench: %s, rank %d killed after %v: the result is %s, without a failure %s", w.name, s.victim, s.after, f.result, clean.result)
		}
		times = append(times, f.took)
		if c.Progress != nil {
			c.Progress(trial*len(ways()) + i + 1)
		}
	}
	return times, nil
}

// struck is who is killed, how long after all have met, and whether the job is
// started again then.
type struck struct {
	victim int // -1: nobody
	after  time.Duration
	again  bool
}

// finished is how a job went: how long it took until the last process had the
// result, how long of that after all had met, and what came out.
type finished struct {
	took, worked time.Duration
	result       string
}

// run runs the job to its end.
func (c *Restart) run(ctx context.Context, load workload, s struck) (*finished, error) {
	ctx, cancel := context.WithTimeout(ctx, jobLimit+4*time.Duration(c.Rounds)*c.Compute)
	defer cancel()
	began := time.Now()
	j, err := c.start(load)
	if err != nil {
		return nil, err
	}
	defer func() { j.end() }()
	if err := j.meet(ctx); err != nil {
		return nil, err
	}
	met := time.Now()
	if s.victim >= 0 {
		if err := j.strike(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.again {
		j.end() // as a launcher does that knows no better
		if j, err = c.start(load); err != nil {
			return nil, err
		}
		s.victim = -1
	}
	result, at, err := j.wait(ctx, s.victim)
	return &finished{at.Sub(began), at.Sub(met), result}, err
}

// said is what a process has said, and when.
type said struct {
	text string
	at   time.Time
}

// workers are the processes of one job.
type workers struct {
	processes []*memberProcess
	lines     chan said
	reading   sync.WaitGroup
	report    *os.File
	ending    sync.Once
}

func (c *Restart) start(load workload) (_ *workers, err error) {
	listeners, addresses, err := (&plan{members: c.Members}).listen()
	if err != nil {
		return nil, err
	}
	defer closeListeners(listeners)
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close() // the processes have it
	text, err := json.Marshal(load)
	if err != nil {
		return nil, err
	}
	j := &workers{lines: make(chan said, 2*c.Members), report: in, processes: make([]*memberProcess, c.Members)}
	j.reading.Go(func() {
		for s := bufio.NewScanner(in); s.Scan(); {
			j.lines <- said{s.Text(), time.Now()} // two of each: there is room
		}
	})
	args := append(slices.Clone(c.Command), string(text))
	for rank, l := range listeners {
		socket, err := l.File()
		if err == nil {
			j.processes[rank], err = startProcess(args, environment(rank, addresses), socket, out)
			socket.Close()
		}
		if err != nil {
			out.Close()
			j.end()
			return nil, fmt.Errorf("bench: cannot start rank %d: %w", rank, err)
		}
	}
	return j, nil
}

// meet waits until a process says that all have met.
func (j *workers) meet(ctx context.Context) error {
	for {
		select {
		case line := <-j.lines:
			if line.text == sayReady {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// strike kills the victim, and waits until it is dead. One that has ended already
// is as good as dead.
func (j *workers) strike(ctx context.Context, s struck) error {
	select {
	case <-time.After(s.after):
	case <-ctx.Done():
		return ctx.Err()
	}
	p := j.processes[s.victim]
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// wait waits until all but the victim have ended well, and returns the result, on
// which all must agree, and when the last one had it.
func (j *workers) wait(ctx context.Context, victim int) (result string, at time.Time, err error) {
	for rank, p := range j.processes {
		select {
		case <-p.ended:
		case <-ctx.Done():
			return "", at, ctx.Err()
		}
		if rank != victim && !p.command.ProcessState.Success() {
			return "", at, fmt.Errorf("rank %d ended with %v", rank, p.command.ProcessState)
		}
	}
	j.reading.Wait()
	close(j.lines)
	for line := range j.lines {
		if line.text == sayReady {
			continue
		}
		if result != "" && line.text != result {
			return "", at, fmt.Errorf("one process got %s, another %s", result, line.text)
		}
		result, at = line.text, line.at
	}
	if result == "" {
		err = errors.New("no process had a result")
	}
	return result, at, err
}

// end kills whoever is left, and waits for all.
func (j *workers) end() {
	j.ending.Do(func() {
		for _, p := range j.processes {
			if p != nil {
				_ = p.command.Process.Kill()
			}
		}
		for _, p := range j.processes {
			if p != nil {
				<-p.ended
				p.input.Close()
			}
		}
		j.reading.Wait()
		j.report.Close()
	})
}
