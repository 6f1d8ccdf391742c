package bench

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// jobLimit is how long a job may take.
const jobLimit = 2 * time.Minute

// kill says which process is killed, and when. If restart is set, all others are killed as
// soon as its death is seen, and the job is started again.
type kill struct {
	rank int
	Death
	restart bool
}

// finished is a job that has its result.
type finished struct {
	took   time.Duration // from the first stage to the result
	events []event
	rows   [][]string
	work   time.Duration // processor time of the killed process in the job
}

// running is a job that runs.
type running struct {
	processes []*launch.Process
	events    chan event
	ended     chan int // ranks
}

// run runs a job, and again if it has to.
func (c *Config) run(ctx context.Context, w Work, k *kill) (*finished, error) {
	ctx, cancel := context.WithTimeout(ctx, jobLimit)
	defer cancel()
	// Linux kills children with the thread that started them, so this one must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := c.runOnce(ctx, w, k)
	if err != nil || k == nil || !k.restart {
		return f, err
	}
	again, err := c.runOnce(ctx, w, nil)
	if err != nil {
		return nil, err
	}
	again.took = again.events[len(again.events)-1].At.Sub(f.events[0].At)
	return again, nil
}

func (c *Config) runOnce(ctx context.Context, w Work, k *kill) (*finished, error) {
	r, err := c.start(w, k)
	if err != nil {
		return nil, err
	}
	f, err := r.watch(ctx, k)
	if err != nil {
		launch.Kill(r.processes)
	}
	for _, p := range r.processes {
		select {
		case <-p.Ended():
		case <-ctx.Done():
			launch.Kill(r.processes)
			return nil, errors.Join(err, ctx.Err())
		}
	}
	if err != nil || k == nil {
		return f, err
	}
	victim := r.processes[k.rank].State()
	if victim.Success() {
		return nil, errAlive
	}
	f.work = victim.UserTime() + victim.SystemTime() - f.begun(k.rank)
	return f, nil
}

// errAlive says that a job was over before its process was to be killed.
var errAlive = errors.New("bench: the job was over before its process was killed")

// start starts the processes.
func (c *Config) start(w Work, k *kill) (*running, error) {
	members := c.Members
	if w.Alone {
		members = 1
	}
	sockets, err := launch.Listen("sql-"+rand.Text()[:12], members)
	if err != nil {
		return nil, err
	}
	defer sockets.Close()
	r := &running{events: make(chan event, 256), ended: make(chan int, members)}
	for rank := range members {
		w.Death = nil
		if k != nil && k.rank == rank {
			w.Death = &k.Death
		}
		text, err := json.Marshal(w)
		if err != nil {
			return nil, err
		}
		out, in := io.Pipe()
		command := launch.Command{
			Args: append(c.Command[:len(c.Command):len(c.Command)], string(text)), Stdout: in,
			DieWithParent: true,
		}
		if !w.Unprotected { // Those that are see the death that is measured, and say so.
			command.Stderr = os.Stderr
		}
		p, err := sockets.Start(rank, command)
		if err != nil {
			launch.Kill(r.processes)
			return nil, err
		}
		r.processes = append(r.processes, p)
		go r.read(rank, out)
		go func() {
			<-p.Ended()
			in.Close()
			r.ended <- rank
		}()
	}
	return r, nil
}

// read passes on what a process prints.
func (r *running) read(rank int, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			e.rank = rank
			r.events <- e
		}
	}
	_, _ = io.Copy(io.Discard, out) // A process must not wait for its reader.
}

// watch follows a job until it has its result, or until its killed process is dead and it
// has to be started again.
func (r *running) watch(ctx context.Context, k *kill) (*finished, error) {
	f := &finished{}
	for {
		select {
		case e := <-r.events:
			f.events = append(f.events, e)
			if e.Phase == done {
				f.rows, f.took = e.Rows, e.At.Sub(f.events[0].At)
				return f, nil
			}
		case rank := <-r.ended:
			state := r.processes[rank].State()
			expected := k != nil && k.restart // Without fault tolerance, others end by the death.
			if state.Success() || expected && rank != k.rank {
				continue // The result, or the death, is on its way here.
			}
			if k == nil || rank != k.rank {
				return nil, fmt.Errorf("bench: rank %d ended: %v", rank, state)
			}
			if k.restart {
				launch.Kill(r.processes)
				return f, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("bench: the job has no result: %w", ctx.Err())
		}
	}
}

// begun returns the processor time that a process had used when it began the first stage.
func (f *finished) begun(rank int) time.Duration {
	for _, e := range f.events {
		if e.rank == rank {
			return e.CPU
		}
	}
	return 0
}
