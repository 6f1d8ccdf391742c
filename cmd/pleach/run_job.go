//go:build unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// job is processes that run. One goroutine owns it, and everything that happens
// comes to it as an event, so it needs no lock.
type job struct {
	jobConfig
	processes []*process
	alive     int
	ended     chan *process
	// late are strikes on processes that had ended: whoever wanted to see a failure
	// has not seen it.
	late []strike
	// interrupted is why all were told to end, or nil.
	interrupted error
	// kill comes when the grace time is over.
	kill <-chan time.Time
}

// runJob runs processes until the last one has ended.
func runJob(c jobConfig) error {
	if err := checkOpenFiles(c.size); err != nil {
		return err
	}
	// A system that kills children with their parent means the thread that
	// started them, so this one must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Signals go past the context: it would not tell the second from the first.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	// Otherwise "| head" would kill this process before it could end the others.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	sockets, err := openSockets(c.size)
	if err != nil {
		return failure{err}
	}
	defer sockets.close()
	j := &job{jobConfig: c, ended: make(chan *process, c.size)}
	if err := j.start(sockets); err != nil {
		return failure{err}
	}
	j.wait(signals)
	return j.report()
}

// start starts all processes, or none.
func (j *job) start(s *sockets) error {
	j.output.start = time.Now()
	for rank := range j.size {
		p, err := startProcess(&j.jobConfig, rank, s)
		if err != nil {
			j.signal(syscall.SIGKILL)
			for range j.processes {
				<-j.ended
			}
			return fmt.Errorf("cannot start rank %d: %w", rank, err)
		}
		go p.wait(j.output, j.ended)
		j.processes = append(j.processes, p)
		j.alive++
	}
	return nil
}

// wait lets the processes run until the last one has ended.
func (j *job) wait(signals <-chan os.Signal) {
	timer := time.NewTimer(j.untilStrike())
	defer timer.Stop()
	for j.alive > 0 {
		select {
		case p := <-j.ended:
			j.end(p)
		case <-timer.C:
			j.strike()
			timer.Reset(j.untilStrike())
		case s := <-signals:
			j.interrupt(runInterruption{s})
		case err := <-j.output.broken:
			j.interrupt(failure{fmt.Errorf("cannot write what processes print: %w", err)})
		case <-j.kill:
			j.output.say("%d processes have not ended in %v: killing them", j.alive, j.grace)
			j.signal(syscall.SIGKILL)
		}
	}
}

// signal sends to all processes that live.
func (j *job) signal(s syscall.Signal) {
	for _, p := range j.processes {
		if !p.ended {
			p.signal(s)
		}
	}
}

// interrupt asks all processes to end, and the second time does not ask.
func (j *job) interrupt(why error) {
	if j.interrupted != nil {
		j.signal(syscall.SIGKILL)
		return
	}
	j.interrupted = why
	j.kill = time.After(j.grace)
	if isTerminal(j.output.stderr) {
		j.output.say("ending %d processes; Ctrl-C again kills them at once", j.alive)
	}
	for _, p := range j.processes {
		p.told, p.stopped = !p.ended, false
	}
	j.signal(syscall.SIGTERM)
	j.signal(syscall.SIGCONT) // who is stopped hears nothing
}

// end takes note of a process that has ended.
func (j *job) end(p *process) {
	p.ended = true
	j.alive--
	if o := p.outcome(); o.kind == failed && j.interrupted == nil {
		j.output.say("rank %d: %s after %v", p.rank, o.text, p.after)
	}
	j.endStopped()
}

// endStopped ends the processes that are stopped for good when only they are
// left: nothing will ever happen again.
func (j *job) endStopped() {
	for _, p := range j.processes {
		if !p.ended && !p.stopped {
			return
		}
	}
	j.signal(syscall.SIGKILL)
}

// untilStrike is the time until the next strike. Without any it is long.
func (j *job) untilStrike() time.Duration {
	if len(j.strikes) == 0 {
		return maxStrike
	}
	return time.Until(j.output.start.Add(j.strikes[0].at))
}

// strike does what is due.
func (j *job) strike() {
	for len(j.strikes) > 0 && j.untilStrike() <= 0 {
		s := j.strikes[0]
		j.strikes = j.strikes[1:]
		p := j.processes[s.rank]
		switch {
		case p.ended:
			j.late = append(j.late, s)
		case s.kind == strikeKill:
			p.killed = true
			p.signal(syscall.SIGKILL)
		case s.kind == strikeStop:
			p.stopped = s.lasts == 0
			p.signal(syscall.SIGSTOP)
		case s.kind == strikeContinue:
			p.signal(syscall.SIGCONT)
		}
	}
	j.endStopped()
}
