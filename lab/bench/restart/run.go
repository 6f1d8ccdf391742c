package restart

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

	"github.com/pleach-go/pleach/agent/launch"
)

// jobLimit is how long one job may take beyond what it computes.
const jobLimit = 2 * time.Minute

// Run measures all trials of a config. If ctx ends first, it returns what was
// measured until then, with ctx's error.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	dir, err := os.MkdirTemp("", "pleach-bench-*")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	var trials [][]time.Duration
	for trial := range c.Trials {
		times, err := c.trial(ctx, rng, trial, dir)
		if err != nil {
			return c.result(trials), err
		}
		trials = append(trials, times)
	}
	return c.result(trials), nil
}

// trial runs the job once in each way, with the same victim at the same part of
// the job, and checks that the result is always the same.
func (c *Config) trial(ctx context.Context, rng *rand.Rand, trial int, dir string) (times []time.Duration, err error) {
	victim, part := rng.IntN(c.Members), rng.Float64()
	var clean *finished
	for i, w := range ways() {
		load := workload{Rounds: c.Rounds, Elements: c.Elements, Compute: c.Compute, Serial: w.serial, Every: c.Every}
		if w.checkpoint {
			load.Checkpoint = filepath.Join(dir, fmt.Sprint("checkpoint-", trial))
		}
		s := killPlan{victim: -1}
		if w.kill {
			s = killPlan{victim, time.Duration(part * float64(clean.worked)), w.again}
		}
		f, err := c.run(ctx, load, s)
		switch {
		case err != nil:
			return nil, fmt.Errorf("bench: %s, rank %d killed after %v: %w", w.name, s.victim, s.after, err)
		case clean == nil:
			clean = f
		case f.result != clean.result:
			return nil, fmt.Errorf("bench: %s, rank %d killed after %v: the result is %s, without a failure %s", w.name,
				s.victim, s.after, f.result, clean.result)
		}
		times = append(times, f.took)
		if c.Progress != nil {
			c.Progress(trial*len(ways()) + i + 1)
		}
	}
	return times, nil
}

// killPlan says which process is killed, how long after all have met, and whether
// the job is started again then.
type killPlan struct {
	victim int // -1: none
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
func (c *Config) run(ctx context.Context, load workload, s killPlan) (*finished, error) {
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
		if err := j.kill(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.again {
		j.end() // as a launcher that knows no better
		j, err = c.start(load)
		if err != nil {
			return nil, err
		}
		s.victim = -1
	}
	result, at, err := j.wait(ctx, s.victim)
	return &finished{at.Sub(began), at.Sub(met), result}, err
}

// logLine is a line that a process has reported, and when.
type logLine struct {
	text string
	at   time.Time
}

// job is the processes of a job that runs.
type job struct {
	processes []*launch.Process
	lines     chan logLine
	reading   sync.WaitGroup
	report    *os.File
	ending    sync.Once
}

func (c *Config) start(load workload) (_ *job, err error) {
	sockets, err := launch.Listen("bench", c.Members)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer sockets.Close()
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close() // the processes have it
	text, err := json.Marshal(load)
	if err != nil {
		return nil, err
	}
	j := &job{lines: make(chan logLine, 2*c.Members), report: in, processes: make([]*launch.Process, c.Members)}
	j.reading.Go(func() {
		for s := bufio.NewScanner(in); s.Scan(); {
			j.lines <- logLine{s.Text(), time.Now()} // two of each: there is room
		}
	})
	args := append(slices.Clone(c.Command), string(text))
	for rank := range j.processes {
		j.processes[rank], err = sockets.Start(rank, launch.Command{
			Args: args, Files: []*os.File{out}, Stderr: os.Stderr,
			Input: true,
		})
		if err != nil {
			out.Close()
			j.end()
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	return j, nil
}

// meet waits until a process reports that all have met.
func (j *job) meet(ctx context.Context) error {
	for {
		select {
		case line := <-j.lines:
			if line.text == lineReady {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// kill kills the victim, and waits until it is dead. One that has ended already is
// as good as dead.
func (j *job) kill(ctx context.Context, s killPlan) error {
	select {
	case <-time.After(s.after):
	case <-ctx.Done():
		return ctx.Err()
	}
	p := j.processes[s.victim]
	p.Kill()
	<-p.Ended()
	return nil
}

// wait waits until all but the victim have ended well, and returns the result, on
// which all must agree, and when the last one had it.
func (j *job) wait(ctx context.Context, victim int) (result string, at time.Time, err error) {
	for rank, p := range j.processes {
		select {
		case <-p.Ended():
		case <-ctx.Done():
			return "", at, ctx.Err()
		}
		if rank != victim && !p.State().Success() {
			return "", at, fmt.Errorf("rank %d ended with %v", rank, p.State())
		}
	}
	j.reading.Wait()
	close(j.lines)
	for line := range j.lines {
		if line.text == lineReady {
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

// end kills the processes that are left, and waits for all.
func (j *job) end() {
	j.ending.Do(func() {
		launch.Kill(j.processes)
		j.reading.Wait()
		j.report.Close()
	})
}
