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
	want       digest // of the output
}

// trial runs the job once in each way, with the same victim, and GNU sort.
func (r *runner) trial(ctx context.Context) (t trial, err error) {
	if r.GNU {
		t.gnu, err = r.gnu(ctx)
		if err != nil {
			return t, err
		}
	}
	clean, err := r.run(ctx, failure{victim: noVictim})
	if err == nil && !clean.equal {
		err = errors.New("the output differs from GNU sort's, or from that of the job before")
	}
	if err != nil {
		return t, fmt.Errorf("bench: without a failure: %w", err)
	}
	t.clean = clean.usage
	victim := r.random.IntN(r.Members)
	times := clean.took(victim, clean.began.Add(clean.wall))
	for i, phase := range phases() {
		f := failure{victim: victim, phase: i, after: times[i] / 2}
		through, err := r.run(ctx, f)
		if err != nil {
			return t, fmt.Errorf("bench: rank %d killed in phase %s: %w", victim, phase, err)
		}
		f.again = true
		again, err := r.run(ctx, f)
		if err != nil {
			return t, fmt.Errorf("bench: rank %d killed in phase %s, and the job started again: %w", victim, phase, err)
		}
		t.killed = append(t.killed, killedPhase{through.wall, again.wall, through.equal && again.equal})
	}
	return t, nil
}

// gnu runs GNU sort. Its first output is the one that jobs should have.
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

// failure is a process that is killed some time after it has begun a phase.
type failure struct {
	victim, phase int
	after         time.Duration
	again         bool // the job is started again then
}

// noVictim is the victim of a job without a failure.
const noVictim = -1

// finished is a job that has ended, and how it went.
type finished struct {
	*job
	usage
	equal bool // its output is the one that it should be
}

// run runs the job to its end.
func (r *runner) run(ctx context.Context, f failure) (*finished, error) {
	dir := filepath.Join(r.dir, "output")
	defer os.RemoveAll(dir)
	output := filepath.Join(dir, "first")
	j, err := r.start(r.input, output)
	if err != nil {
		return nil, err
	}
	defer func() { j.end() }()
	began := j.began
	if f.victim != noVictim {
		if err := j.kill(ctx, f); err != nil {
			return nil, err
		}
	}
	if f.again {
		j.end() // as a launcher that knows no better
		output = filepath.Join(dir, "again")
		j, err = r.start(r.input, output)
		if err != nil {
			return nil, err
		}
		f.victim = noVictim
	}
	cpu, err := j.wait(ctx, f.victim)
	if err != nil {
		return nil, err
	}
	u := usage{time.Since(began), cpu}
	equal, err := r.check(output)
	return &finished{j, u, equal}, err
}

// check counts a job, and reports whether its output is the one that it should be.
func (r *runner) check(output string) (equal bool, err error) {
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
	r.runs++
	if r.Progress != nil {
		r.Progress(r.runs)
	}
	return got == r.want, nil
}
