package experiments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/samplesort"
)

// How long sample sort takes when a process dies in one of its four phases, beside a
// restart. The thesis describes the sort (Stengler 2017, §3.7), and does not measure it.

// Sorts says what to measure.
type Sorts struct {
	// Members is the size of the jobs.
	Members int
	// Records is the number of records of each process.
	Records int
	// Trials, Seed, Command and Progress are those of [Queries].
	Trials   int
	Seed     uint64
	Command  []string
	Progress func(share float64)
}

// SortPhases returns the names of the phases. A process dies when it begins one.
func SortPhases() []string { return []string{"sample", "exchange", "sort", "write"} }

// sorting is the program of a process.
type sorting struct {
	Records int    // of all processes
	File    string // with the records; if empty, they are generated
	Output  string
	Victim  int
	Phase   int // in which the victim dies, from 1
}

// sortReport is what a process has to say.
type sortReport struct{ Checksum string }

func (s *sorting) input() samplesort.Input {
	if s.File != "" {
		return samplesort.Files(s.File)
	}
	return samplesort.Generate(s.Records)
}

func (s *sorting) run(ctx context.Context, w *pleach.World, die func()) (any, error) {
	result, err := samplesort.Run(ctx, w, samplesort.Job{
		Input: s.input(), Output: s.Output,
		Phase: func(name string) {
			if w.Rank() == s.Victim && s.Phase > 0 && name == SortPhases()[s.Phase-1] {
				die()
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &sortReport{result.Output.Checksum()}, w.Finalize(ctx)
}

// sortTrials are the jobs.
type sortTrials struct {
	*Sorts
	directory string
	seen      tally
}

// Measure runs all jobs: those of a trial one after the other.
func (s *Sorts) Measure(ctx context.Context) (rows []ApplicationRow, err error) {
	if s.Trials < 1 || s.Members < 2 || s.Records < 1 {
		return nil, fmt.Errorf(
			"experiments: %d sorts of %d records with %d members: choose 1 trial and record or more, and 2 members or more",
			s.Trials, s.Records, s.Members)
	}
	directory, err := os.MkdirTemp("", "pleach-sorts-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	t := &sortTrials{Sorts: s, directory: directory, seen: tally{}}
	records, err := samplesort.Generate(s.Members*s.Records).Read(ctx, samplesort.Records, 0, 1)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(t.file(), records, 0o666); err != nil {
		return nil, err
	}
	rng, tell := rand.New(rand.NewPCG(s.Seed, 0)), steps(s.Trials, s.Progress)
	for range s.Trials {
		for _, data := range []string{Generated, Present} {
			if err := t.run(ctx, data, rng); err != nil {
				return nil, fmt.Errorf("experiments: sample sort, %s data: %w", data, err)
			}
		}
		tell()
	}
	return t.seen.rows(s.Members), nil
}

func (t *sortTrials) file() string { return filepath.Join(t.directory, "records") }

// run runs each job once. The same process dies in the same phase of both approaches.
func (t *sortTrials) run(ctx context.Context, data string, rng *rand.Rand) error {
	normal, err := t.complete(ctx, applicationCase{RunThrough, data, 0}, noVictim)
	if err != nil {
		return err
	}
	for phase := 1; phase <= phases; phase++ {
		victim := rng.IntN(t.Members)
		if _, err := t.complete(ctx, applicationCase{RunThrough, data, phase}, victim); err != nil {
			return err
		}
		took, err := t.attempt(ctx, data, phase, victim, true, nil)
		if err != nil {
			return err
		}
		t.seen.add(applicationCase{Restart, data, phase}, took+normal, 0)
	}
	return nil
}

// complete runs a job whose output has to be right, and returns its time in milliseconds.
func (t *sortTrials) complete(ctx context.Context, c applicationCase, victim int) (float64, error) {
	took, err := t.attempt(ctx, c.data, c.phase, victim, false, func(output string, reports []*sortReport) error {
		checked, err := samplesort.Check(ctx, output)
		if err != nil {
			return err
		}
		for rank, r := range reports {
			if rank != victim && r.Checksum != checked.Checksum() {
				return fmt.Errorf("rank %d has reported checksum %s, and the output has %s", rank, r.Checksum, checked.Checksum())
			}
		}
		if want := t.Members * t.Records; checked.Records != want {
			return fmt.Errorf("%d records, want %d", checked.Records, want)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("%+v, victim %d: %w", c, victim, err)
	}
	t.seen.add(c, took, 0)
	return took, nil
}

// attempt runs a job into a directory of its own, and ends it when the victim has died if
// that is fatal.
func (t *sortTrials) attempt(ctx context.Context, data string, phase, victim int, fatal bool,
	check func(output string, reports []*sortReport) error,
) (took float64, err error) {
	output := filepath.Join(t.directory, "output")
	defer func() { err = errors.Join(err, os.RemoveAll(output)) }()
	s := &sorting{Records: t.Members * t.Records, Output: output, Victim: victim, Phase: phase}
	if data == Present {
		s.File = t.file()
	}
	reports, took, err := timedJob[sortReport](ctx, &job{
		Members: t.Members, Victim: victim, Fatal: fatal,
		Plan: plan{Sort: s}, Command: t.Command,
	})
	if err == nil && check != nil {
		err = check(output, reports)
	}
	return took, err
}
