package launch

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/internal/driver/admission"
)

// ownFiles is how many files this process needs for itself.
const ownFiles = 32

// Job describes processes that run one program.
type Job struct {
	Size    int
	Program string   // the file to execute
	Args    []string // its name and its arguments
	Env     []string // added to the environment of all
	// Faults are injected at their times or lines. They are in order of time: see
	// [Schedule].
	Faults []Fault
	// Respawn restarts a process that a signal or a panic has ended, under its rank.
	Respawn bool
	// Strict counts every process that failed, even if the others have completed the job
	// without it.
	Strict bool
	// Grace is how long processes may take to end after they were asked to.
	Grace time.Duration
	// Stdin is handed to rank 0, if not nil.
	Stdin  io.Reader
	Output *Output
	// Hosts are where the processes run. If nil, on this host.
	Hosts *Hosts
	// Interactive says that a person watches: what Ctrl-C does is explained.
	Interactive bool
}

// OpenFilesError says that a job needs more open files than the system allows.
type OpenFilesError struct {
	Size             int
	Needed, Limit    uint64
	LargestThatWorks int
}

func (e *OpenFilesError) Error() string {
	return fmt.Sprintf("-n %d: %d files would be open, and the limit is %d: raise it by ulimit -n %d, or choose -n %d or less",
		e.Size, e.Needed, e.Limit, e.Needed, e.LargestThatWorks)
}

// InterruptedError says that a signal ended a job.
type InterruptedError struct{ Signal os.Signal }

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("all processes were asked to end (%v)", e.Signal)
}

// running is a job that runs. One goroutine owns it, and everything that happens
// comes to it as an event, so it needs no lock.
type running struct {
	Job
	ranks     starter
	processes []*rankProcess
	respawned []int // by rank: how often
	alive     int
	ended     chan *rankProcess
	// triggers are the faults that wait for a line, and matched gets one when its line
	// is there.
	triggers []*trigger
	matched  chan *trigger
	// told gets what processes say of the job, and membership is what is known from it.
	told       chan report
	membership membership
	// missed are faults whose process had ended: the failure did not happen.
	missed []Fault
	// interrupted is why all processes were asked to end, or nil.
	interrupted error
	// kill comes when the grace time is over.
	kill <-chan time.Time
}

// starter starts the processes of a job by rank.
type starter interface {
	startRank(rank int, c Command) (worker, error)
	Close() error
}

// worker is a process of a job, on this host or another.
type worker interface {
	Kill()
	Terminate()
	Suspend()
	Resume()
	// feed hands over all that is read as standard input.
	feed(io.Reader)
	// Ended is closed when the process has ended and its output is written.
	Ended() <-chan struct{}
	// exit may be called after Ended.
	exit() exit
}

// exit is how a process has ended.
type exit struct {
	at     time.Time
	code   int            // -1: by a signal, or unknown
	signal syscall.Signal // that has ended it, or 0
	lost   string         // why the end is unknown, or ""
}

// rankProcess is the process of a rank, and what was done to it.
type rankProcess struct {
	worker
	rank    int
	ended   bool
	killed  *Fault // by which it was killed, or nil
	evicted string // why it was killed as one that was removed from the job, or ""
	stopped bool   // by a fault, for good
	asked   bool   // to end, with all others
	again   bool   // it replaces a process of its rank
}

// Run runs a job until its last process has ended. SIGINT and SIGTERM ask all
// processes to end; after the grace time, or at the second signal, they are
// killed. If the job cannot be started, Run returns an error, which is an
// [*OpenFilesError] if too few files may be open. Whatever happens later is in
// the report.
func Run(j Job) (*Report, error) {
	if err := j.checkOpenFiles(); err != nil {
		return nil, err
	}
	// Linux kills children with the thread that started them, so this one must
	// stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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

	ranks, err := j.open("run-" + rand.Text()[:12])
	if err != nil {
		return nil, err
	}
	defer ranks.Close()
	r := &running{Job: j, ranks: ranks, ended: make(chan *rankProcess, j.Size), respawned: make([]int, j.Size)}
	r.Faults, r.triggers = splitTriggers(j.Faults)
	r.matched = make(chan *trigger, len(r.triggers))
	r.told, r.membership = make(chan report, 64), newMembership(j.Size)
	if err := r.start(); err != nil {
		return nil, err
	}
	r.wait(signals)
	return r.report(), nil
}

// open opens the sockets of all ranks, so that all addresses are known.
func (j *Job) open(group string) (starter, error) {
	if j.Hosts != nil {
		return j.connectHosts(group)
	}
	return Listen(group, j.Size)
}

// checkOpenFiles says what to do before the work fails half way.
func (j *Job) checkOpenFiles() error {
	limit, ok := admission.OpenFileLimit()
	need := uint64(FilesPerProcess*j.Size + ownFiles)
	if j.Hosts != nil || !ok || need <= limit {
		return nil
	}
	fit := (max(limit, ownFiles+FilesPerProcess) - ownFiles) / FilesPerProcess
	return &OpenFilesError{j.Size, need, limit, int(fit)}
}

// start starts all processes, or none.
func (r *running) start() error {
	r.Output.begin()
	for rank := range r.Size {
		p, err := r.startRank(rank, r.Env)
		if err != nil {
			for _, p := range r.processes {
				p.Kill()
				<-p.Ended()
			}
			return err
		}
		r.processes = append(r.processes, p)
		r.alive++
	}
	return nil
}

func (r *running) startRank(rank int, env []string) (*rankProcess, error) {
	stdout := &lines{output: r.Output, to: &r.Output.Stdout, rank: rank, whole: r.lineWatcher(rank)}
	stderr := &lines{output: r.Output, to: &r.Output.Stderr, rank: rank, whole: r.lineWatcher(rank)}
	input := rank == 0 && r.Stdin != nil && r.respawned[0] == 0
	started, err := r.ranks.startRank(rank, Command{
		Program: r.Program, Args: r.Args, Env: env,
		Stdout: stdout, Stderr: stderr, Reports: &reports{rank: rank, to: r.told}, Input: input, DieWithParent: true,
	})
	if err != nil {
		return nil, err
	}
	p := &rankProcess{worker: started, rank: rank}
	if input {
		// A pipe, not the terminal itself, which a group in the background may
		// not read.
		go p.feed(r.Stdin)
	}
	go func() {
		<-p.Ended()
		stdout.flush()
		stderr.flush()
		r.ended <- p
	}()
	return p, nil
}

// wait lets the processes run until the last one has ended.
func (r *running) wait(signals <-chan os.Signal) {
	timer := time.NewTimer(r.untilFault())
	defer timer.Stop()
	for r.alive > 0 {
		select {
		case p := <-r.ended:
			r.end(p)
		case <-timer.C:
			r.injectFaults()
			timer.Reset(r.untilFault())
		case t := <-r.matched:
			r.injectTriggered(t)
			timer.Reset(r.untilFault())
		case t := <-r.told:
			r.handleReport(t)
		case <-r.membership.expired:
			r.killRemoved()
		case s := <-signals:
			r.interrupt(&InterruptedError{s})
		case err := <-r.Output.broken:
			r.interrupt(fmt.Errorf("cannot write what processes print: %w", err))
		case <-r.kill:
			r.Output.notice("%d processes have not ended in %v: killing them", r.alive, r.Grace)
			r.each(worker.Kill)
		}
	}
	for len(r.told) > 0 { // before the last process ended
		r.handleReport(<-r.told)
	}
	for len(r.matched) > 0 { // lines that were the last ones
		r.inject((<-r.matched).fault)
	}
}

// each does something to all processes that live.
func (r *running) each(do func(worker)) {
	for _, p := range r.processes {
		if !p.ended {
			do(p.worker)
		}
	}
}

// interrupt asks all processes to end. The second time it kills them.
func (r *running) interrupt(why error) {
	if r.interrupted != nil {
		r.each(worker.Kill)
		return
	}
	r.interrupted = why
	r.kill = time.After(r.Grace)
	if r.Interactive {
		r.Output.notice("ending %d processes; Ctrl-C again kills them at once", r.alive)
	}
	for _, p := range r.processes {
		p.asked, p.stopped = !p.ended, false
	}
	r.each(worker.Terminate)
	r.each(worker.Resume) // a stopped process handles no signal
}

// end takes note of a process that has ended.
func (r *running) end(p *rankProcess) {
	p.ended = true
	r.alive--
	if p.killed != nil && !p.wasKilled() { // it was faster
		r.missed = append(r.missed, *p.killed)
	}
	o := r.outcome(p)
	if r.respawn(p, o) {
		return
	}
	if o.Kind == Failed && r.interrupted == nil && p.evicted == "" {
		r.Output.notice("rank %d: %s after %v", p.rank, o.Text, o.After)
	}
	r.endStopped()
}

// endStopped kills the processes that are stopped for good when no other is left: nothing will ever
// happen again. A process that was removed from the job has its grace time even then: it may have
// left, and its own report of that may be read after the report of another process.
func (r *running) endStopped() {
	for _, p := range r.processes {
		if !p.ended && !p.stopped {
			return
		}
	}
	r.each(worker.Kill)
}

// untilFault is the time until the next fault. Without any it is long.
func (r *running) untilFault() time.Duration {
	if len(r.Faults) == 0 {
		return MaxFaultTime
	}
	return time.Until(r.Output.start.Add(r.Faults[0].At))
}

// injectFaults injects those that are due.
func (r *running) injectFaults() {
	for len(r.Faults) > 0 && r.untilFault() <= 0 {
		f := r.Faults[0]
		r.Faults = r.Faults[1:]
		r.inject(f)
	}
	r.endStopped()
}

func (r *running) inject(f Fault) {
	p := r.processes[f.Rank]
	switch {
	case p.ended:
		r.missed = append(r.missed, f)
	case f.Kind == FaultKill:
		p.killed = &f
		r.Output.notice("killing rank %d after %v (%v)", f.Rank, r.since(), f)
		p.Kill()
	case f.Kind == FaultStop:
		p.stopped = f.Lasts == 0
		p.Suspend()
	case f.Kind == FaultResume:
		p.Resume()
	}
}
