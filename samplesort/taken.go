package samplesort

import (
	"context"
	"fmt"
	"sync"
)

// The exchange tells the bucket of a task that was taken over as soon as it is there, maybe
// while this process sorts its own. What the task has written is needed later, as its input
// to the next call. So its file is made in between, at the same time as the process's own.

// taken makes the files of tasks that this process has taken over.
type taken struct {
	makeFile func(task int, pieces [][]byte) (written, error)
	made     []chan madeFile // by task
	work     sync.WaitGroup

	mu    sync.Mutex
	tasks map[int]bool  // whose files are made, or are being made
	ended chan struct{} // closed when no file is made any more
	all   []written     // of all tasks, if ended well
}

// madeFile is the file of a task, or why there is none.
type madeFile struct {
	written written
	err     error
}

func newTaken(tasks int, makeFile func(task int, pieces [][]byte) (written, error)) *taken {
	t := &taken{
		makeFile: makeFile, made: make([]chan madeFile, tasks), tasks: make(map[int]bool),
		ended: make(chan struct{}),
	}
	for task := range t.made {
		t.made[task] = make(chan madeFile, 1)
	}
	return t
}

// begin makes the file of a task, in the background, unless that is begun or all files are
// there.
func (t *taken) begin(task int, pieces [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks[task] || t.isEnded() {
		return
	}
	t.tasks[task] = true
	t.work.Go(func() {
		file, err := t.makeFile(task, pieces)
		t.made[task] <- madeFile{file, err}
	})
}

// begun reports whether the file of a task is made, needs not be, or is being made.
func (t *taken) begun(task int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks[task] || t.isEnded()
}

// written returns what is in the file of a task, when it is made.
func (t *taken) written(ctx context.Context, task int) (written, error) {
	select {
	case f := <-t.made[task]:
		return f.written, f.err
	case <-t.ended:
		if t.all != nil {
			return t.all[task], nil
		}
	case <-ctx.Done():
	}
	return written{}, fmt.Errorf("samplesort: the file of task %d was not made: %w", task, context.Cause(ctx))
}

// end returns when no file is being made, and none will be. A process that dies later has
// written its file, so all is what every task has written, or nil if the job has failed.
func (t *taken) end(all []written) {
	t.mu.Lock()
	if !t.isEnded() {
		t.all = all
		close(t.ended)
	}
	t.mu.Unlock()
	t.work.Wait()
}

func (t *taken) isEnded() bool {
	select {
	case <-t.ended:
		return true
	default:
		return false
	}
}
