package sort

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// Run measures all trials of a config. If ctx ends first, it returns what was measured
// until then, with ctx's error.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	dir, err := os.MkdirTemp("", "pleach-bench-*")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	r := &runner{Config: c, dir: dir, input: filepath.Join(dir, "input"), random: rand.New(rand.NewPCG(c.Seed, 0))}
	if err := writeInput(r.input, c.Records, c.Seed); err != nil {
		return Result{}, err
	}
	var trials []trial
	for range c.Trials {
		t, err := r.trial(ctx)
		if err != nil {
			return c.result(trials), err
		}
		trials = append(trials, t)
	}
	return c.result(trials), nil
}

// runner runs trials.
type runner struct {
	Config
	dir, input string
	random     *rand.Rand
	runs       int
	want       digest // of the output of the first job
}

// trial runs the job once in each way, with the same victim, and GNU sort beside it.
func (r *runner) trial(ctx context.Context) (t trial, err error) {
	victim := r.random.IntN(r.Members)
	if r.GNU {
		if t.gnu, err = r.gnu(ctx); err != nil {
			return t, err
		}
	}
	clean, times, err := r.clean(ctx, victim)
	if err != nil {
		return t, fmt.Errorf("bench: without a failure: %w", err)
	}
	t.clean = clean
	for i, phase := range phases() {
		f := failure{victim, i, times[i] / 2}
		through, equal, err := r.runThrough(ctx, f)
		if err != nil {
			return t, fmt.Errorf("bench: rank %d killed in phase %s: %w", victim, phase, err)
		}
		again, equalAgain, err := r.restart(ctx, f)
		if err != nil {
			return t, fmt.Errorf("bench: rank %d killed in phase %s, and the job started again: %w", victim, phase, err)
		}
		t.killed = append(t.killed, killedPhase{through, again, equal && equalAgain})
	}
	return t, nil
}

// failure is a process that is killed some time after it has begun a phase.
type failure struct {
	victim, phase int
	after         time.Duration
}

// noVictim is the victim of a job without a failure.
const noVictim = -1

// gnu runs GNU sort. Its output is that of the job.
func (r *runner) gnu(ctx context.Context) (usage, error) {
	output := filepath.Join(r.dir, "gnu")
	defer os.Remove(output)
	u, err := runGNU(ctx, r.input, output)
	if err != nil || r.want != (digest{}) {
		return u, err
	}
	r.want, err = digestOf(output)
	return u, err
}

// clean runs the job without a failure. It returns how long a process is in each phase.
func (r *runner) clean(ctx context.Context, rank int) (usage, []time.Duration, error) {
	output := r.newOutput()
	defer os.RemoveAll(output)
	j, err := r.start(r.input, output)
	if err != nil {
		return usage{}, nil, err
	}
	defer j.end()
	u, err := j.wait(ctx, noVictim)
	if err != nil {
		return usage{}, nil, err
	}
	times := j.took(rank, j.began.Add(u.wall))
	equal, err := r.done(output)
	if err == nil && !equal {
		err = errors.New("the output differs from GNU sort's, or from that of the job before")
	}
	return u, times, err
}

// runThrough runs the job with a failure, and returns how long it took, and whether its
// output was that without.
func (r *runner) runThrough(ctx context.Context, f failure) (took time.Duration, equal bool, err error) {
	output := r.newOutput()
	defer os.RemoveAll(output)
	j, err := r.start(r.input, output)
	if err != nil {
		return 0, false, err
	}
	defer j.end()
	if err := j.kill(ctx, f.victim, f.phase, f.after); err != nil {
		return 0, false, err
	}
	u, err := j.wait(ctx, f.victim)
	if err != nil {
		return 0, false, err
	}
	equal, err = r.done(output)
	return u.wall, equal, err
}

// restart runs the job with a failure, kills all processes as a launcher does that knows no
// better, and runs the job again.
func (r *runner) restart(ctx context.Context, f failure) (took time.Duration, equal bool, err error) {
	first, output := r.newOutput()+"-first", r.newOutput()
	defer os.RemoveAll(first)
	defer os.RemoveAll(output)
	j, err := r.start(r.input, first)
	if err != nil {
		return 0, false, err
	}
	err = j.kill(ctx, f.victim, f.phase, f.after)
	j.end()
	if err != nil {
		return 0, false, err
	}
	again, err := r.start(r.input, output)
	if err != nil {
		return 0, false, err
	}
	defer again.end()
	if _, err := again.wait(ctx, noVictim); err != nil {
		return 0, false, err
	}
	took = time.Since(j.began)
	equal, err = r.done(output)
	return took, equal, err
}

// newOutput returns the name of the next job's output.
func (r *runner) newOutput() string { return filepath.Join(r.dir, fmt.Sprint("output-", r.runs)) }

// done counts a job, and reports whether its output is the one that it should be.
func (r *runner) done(output string) (equal bool, err error) {
	files, err := filepath.Glob(filepath.Join(output, "part-*"))
	if err != nil {
		return false, err
	}
	got, err := digestOf(files...)
	if err != nil {
		return false, err
	}
	if r.want == (digest{}) {
		r.want = got
	}
	if r.runs++; r.Progress != nil {
		r.Progress(r.runs)
	}
	return got == r.want, nil
}
