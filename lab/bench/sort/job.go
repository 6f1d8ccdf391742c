package sort

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// job is the processes of a sort that runs.
type job struct {
	began     time.Time
	processes []*launch.Process
	logs      []*phaseLog // by rank
}

// phaseLog is what a process prints to standard error: a line when it begins a phase.
type phaseLog struct {
	mu      sync.Mutex
	partial []byte
	others  []string // lines of another kind
	at      []time.Time
	began   []chan struct{} // by phase
}

func newPhaseLog() *phaseLog {
	l := &phaseLog{at: make([]time.Time, len(phases()))}
	for range l.at {
		l.began = append(l.began, make(chan struct{}))
	}
	return l
}

// Write implements [io.Writer].
func (l *phaseLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, b...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		name, _ := strings.CutPrefix(string(line), "phase ")
		if i := slices.Index(phases(), name); i >= 0 && l.at[i].IsZero() {
			l.at[i] = time.Now()
			close(l.began[i])
		} else {
			l.others = append(l.others, string(line))
		}
		l.partial = rest
	}
}

// start starts a job.
func (c *Config) start(input, output string) (*job, error) {
	j := &job{began: time.Now(), processes: make([]*launch.Process, c.Members)}
	sockets, err := launch.Listen("bench", c.Members)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer sockets.Close()
	args := append(slices.Clone(c.Command), output, input)
	for rank := range j.processes {
		j.logs = append(j.logs, newPhaseLog())
		j.processes[rank], err = sockets.Start(rank, launch.Command{Args: args, Stderr: j.logs[rank]})
		if err != nil {
			j.end()
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	return j, nil
}

// end kills the processes that are left.
func (j *job) end() { launch.Kill(j.processes) }

// kill kills the victim, and waits until it is dead. One that has ended already is as good
// as dead.
func (j *job) kill(ctx context.Context, f failure) error {
	p := j.processes[f.victim]
	select {
	case <-j.logs[f.victim].began[f.phase]:
	case <-p.Ended():
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(f.after):
	case <-p.Ended():
	case <-ctx.Done():
		return ctx.Err()
	}
	p.Kill()
	<-p.Ended()
	return nil
}

// wait waits until all but the victim have ended well, and returns the processor time of
// all.
func (j *job) wait(ctx context.Context, victim int) (cpu time.Duration, err error) {
	for rank, p := range j.processes {
		select {
		case <-p.Ended():
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if rank != victim && !p.State().Success() {
			return 0, fmt.Errorf("rank %d ended with %v: %s", rank, p.State(), strings.Join(j.logs[rank].others, "; "))
		}
		cpu += p.State().UserTime() + p.State().SystemTime()
	}
	return cpu, nil
}

// took returns how long a process of a job that has ended was in each phase.
func (j *job) took(rank int, ended time.Time) (times []time.Duration) {
	at := append(slices.Clone(j.logs[rank].at), ended)
	for i := range phases() {
		times = append(times, at[i+1].Sub(at[i]))
	}
	return times
}
