package samplesort

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pleach-go/pleach/collective"
)

// Job is a sort. All processes pass the same Input, Format and Output.
type Job struct {
	Input  Input
	Format Format
	Order  Order // of lines
	// Output is a directory that all processes can write to. It must be empty or new. It
	// gets a file for each task, part-00000 and so on, and last [Marker]. A file has its
	// name only when it is complete, so a reader that sees the marker sees all of the
	// output, whichever processes have died. The output of a job that failed has no
	// marker.
	Output string
	// Phase, if not nil, is called when this process begins a phase: sample, exchange,
	// sort or write.
	Phase func(name string)
	// Done, if not nil, is called when the output is complete, by the owner of task 0.
	// If that process dies before the others know, the next owner calls it again.
	Done func(Result)
}

// Result is what a job has done.
type Result struct {
	Input, Output Summary
	Dropped       Summary // records of the input that Order.Unique has left out
	Files         int
}

// Equal reports whether the output has the records of the input, but those that were dropped.
func (r *Result) Equal() bool { return r.Input == r.Output.plus(r.Dropped) }

// ErrUnequal is returned by [Run] when the output does not contain the records of the input.
var ErrUnequal = errors.New("samplesort: the output does not contain the records of the input")

// World is the processes that sort: a [*github.com/pleach-go/pleach.World] or a
// [collective.Comm].
type World interface {
	collective.Communicator
	Rank() int
	Size() int
	Hold() (release func())
	HoldLimits() (calls, bytes int)
}

// Run sorts. All processes call it. It returns the result to all of them.
func Run(ctx context.Context, w World, j Job) (Result, error) {
	if j.Phase == nil {
		j.Phase = func(string) {}
	}
	if err := j.Order.check(j.Format); err != nil {
		return Result{}, err
	}
	s := &sorter{World: w, job: j, rules: rules{j.Format, j.Order}}
	s.taken = newTaken(w.Size(), s.sortAndWrite)
	defer s.taken.end(nil)
	if err := prepareOutput(j.Output); err != nil {
		return Result{}, err
	}
	// From here on all processes are connected, and a death is noticed at once. One
	// before its first message looks like a late start, for which the others wait long.
	if err := collective.Barrier(ctx, w); err != nil {
		return Result{}, err
	}
	if err := s.readStream(ctx); err != nil {
		return Result{}, err
	}
	if err := s.sort(ctx); err != nil {
		return Result{}, err
	}
	if err := s.complete(ctx); err != nil {
		return Result{}, err
	}
	if !s.result.Equal() {
		return s.result, ErrUnequal
	}
	return s.result, nil
}

// sorter is a process's part in a job.
type sorter struct {
	World
	job    Job
	rules  rules
	limits []splitter
	result Result
	// restored are the shares of tasks that were taken over while sampling, by task: the
	// exchange needs them again.
	restored sync.Map
	taken    *taken
}

// read returns a task's share of the input.
func (s *sorter) read(ctx context.Context, task int) (*table, error) {
	b, err := s.job.Input.Read(ctx, s.job.Format, task, s.Size())
	if err != nil {
		return nil, fmt.Errorf("samplesort: read the share of task %d: %w", task, err)
	}
	t, err := newTable(s.rules, b)
	if err != nil {
		return nil, fmt.Errorf("samplesort: the share of task %d: %w", task, err)
	}
	return t, nil
}

// sort returns when all tasks have written their files.
func (s *sorter) sort(ctx context.Context) error {
	s.job.Phase("sample")
	t, err := s.read(ctx, s.Rank())
	if err != nil {
		return err
	}
	if err := s.chooseLimits(ctx, t); err != nil {
		return err
	}
	s.job.Phase("exchange")
	// Until all files are written, the senders keep what each task has received.
	held := s.mayHold()
	if held {
		defer s.Hold()()
	}
	pieces, err := s.exchange(ctx, t)
	if err != nil {
		return err
	}
	s.job.Phase("sort")
	sorted, err := s.sortBucket(s.Rank(), pieces)
	if err != nil {
		return err
	}
	s.job.Phase("write")
	own, err := writeTable(s.job.Output, s.Rank(), sorted)
	if err != nil {
		return err
	}
	return s.gatherResult(ctx, own, held)
}

// mayHold reports whether the log may keep the exchange. One process may come to own all
// tasks, and then logs all of the input. All processes have the same answer.
func (s *sorter) mayHold() bool {
	const heldCalls, overhead = 2, 256 // overhead is that of a message, in bytes
	calls, bytes := s.HoldLimits()
	return calls >= heldCalls && s.result.Input.Bytes+overhead*s.Size()*s.Size() <= bytes
}

// chooseLimits gathers the samples and summaries of all tasks.
func (s *sorter) chooseLimits(ctx context.Context, t *table) error {
	describe := func(t *table, task int) []byte {
		return append(t.summarize().appendTo(nil), sample(t, task, sampleSize(s.Size()))...)
	}
	all, err := collective.Allgather(ctx, s, describe(t, s.Rank()),
		collective.Restore(func(ctx context.Context, task int) ([]byte, error) {
			t, err := s.read(ctx, task)
			if err != nil {
				return nil, err
			}
			s.restored.Store(task, t)
			return describe(t, task), nil
		}))
	if err != nil {
		return err
	}
	var samples []splitter
	for task, b := range all {
		summary, rest, err := cutSummary(b)
		if err != nil {
			return err
		}
		s.result.Input = s.result.Input.plus(summary)
		some, err := s.rules.decodeSample(rest, task)
		if err != nil {
			return err
		}
		samples = append(samples, some...)
	}
	s.limits = s.rules.chooseSplitters(samples, s.Size())
	return nil
}

// exchange sends the records of this process's task to their buckets, and returns those of
// its own.
func (s *sorter) exchange(ctx context.Context, t *table) ([][]byte, error) {
	return collective.Alltoall(ctx, s, partition(s.limits, t, s.Rank(), s.Size()),
		collective.Restore(func(ctx context.Context, task int) ([][]byte, error) {
			if t, ok := s.restored.LoadAndDelete(task); ok {
				return partition(s.limits, t.(*table), task, s.Size()), nil
			}
			t, err := s.read(ctx, task)
			if err != nil {
				return nil, err
			}
			return partition(s.limits, t, task, s.Size()), nil
		}),
		collective.Takeover(s.taken.begin))
}

// sortBucket sorts the records of a task's bucket.
func (s *sorter) sortBucket(task int, pieces [][]byte) (*table, error) {
	t, err := newTable(s.rules, pieces...)
	if err != nil {
		return nil, fmt.Errorf("samplesort: the bucket of task %d: %w", task, err)
	}
	t.sort()
	if s.rules.Unique {
		t.dropDuplicates()
	}
	return t, nil
}

// sortAndWrite makes the file of a task that was taken over.
func (s *sorter) sortAndWrite(task int, pieces [][]byte) (written, error) {
	t, err := s.sortBucket(task, pieces)
	if err != nil {
		return written{}, err
	}
	return writeTable(s.job.Output, task, t)
}

// readBucket returns the bucket of a task whose process has died with it, when the exchange
// was not held: it picks the records from all of the input.
func (s *sorter) readBucket(ctx context.Context, bucket int) ([][]byte, error) {
	pieces := make([][]byte, s.Size())
	for task := range pieces {
		t, err := s.read(ctx, task)
		if err != nil {
			return nil, err
		}
		pieces[task] = pick(s.limits, t, task, bucket)
	}
	return pieces, nil
}

// gatherResult returns when all tasks have written their files. The new owner of a task
// writes the task's file.
func (s *sorter) gatherResult(ctx context.Context, own written, held bool) error {
	all, err := collective.Allgather(ctx, s, own.appendTo(nil),
		collective.Restore(func(ctx context.Context, task int) ([]byte, error) {
			if !held && !s.taken.begun(task) {
				pieces, err := s.readBucket(ctx, task)
				if err != nil {
					return nil, err
				}
				s.taken.begin(task, pieces)
			}
			file, err := s.taken.written(ctx, task)
			return file.appendTo(nil), err
		}))
	if err != nil {
		return err
	}
	files := make([]written, len(all))
	for task, b := range all {
		files[task], err = cutWritten(b)
		if err != nil {
			return err
		}
		s.result.Output = s.result.Output.plus(files[task].kept)
		s.result.Dropped = s.result.Dropped.plus(files[task].dropped)
	}
	s.result.Files = len(all)
	s.taken.end(files)
	return nil
}

// complete marks the output as complete, and reports it.
func (s *sorter) complete(ctx context.Context) error {
	return collective.Once(ctx, s, func(context.Context) error {
		if s.result.Equal() {
			if err := complete(s.job.Output, s.rules, s.result.Files, s.result.Output); err != nil {
				return err
			}
		}
		if s.job.Done != nil {
			s.job.Done(s.result)
		}
		return nil
	})
}
