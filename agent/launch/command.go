package launch

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// ErrUnsupported is returned by [Sockets.Start] on systems where processes cannot
// inherit sockets.
var ErrUnsupported = errors.New("starting the processes of a group needs a Unix system: they inherit sockets")

// Command describes a process to start.
type Command struct {
	// Program is the file to execute. If empty, the running program.
	Program string
	// Args are the program's name and its arguments.
	Args []string
	// Env is added to the environment.
	Env []string
	// Files are inherited as descriptors 4, 5 and so on, behind the socket of a
	// rank; without a rank, as 3, 4 and so on. The caller closes them.
	Files []*os.File
	// Stdout and Stderr get what the process prints. A file is inherited; if
	// nil, output is discarded. Writes of one process to one stream do not
	// overlap.
	Stdout, Stderr io.Writer
	// Reports, if not nil, gets what a World in the process tells the launcher: see
	// package internal/driver/job. Only processes of a rank have it.
	Reports io.Writer
	// Input asks for a pipe to the standard input: [Process.Input]. Without, the
	// process reads nothing.
	Input bool
	// DieWithParent has Linux kill the process when the thread that started it
	// ends. The caller must keep that thread: see [runtime.LockOSThread].
	DieWithParent bool
}

// Start starts a process that is no rank of a job. [Sockets.Start] starts one
// that is.
func Start(c Command) (*Process, error) { return start(c, os.Environ(), c.Files) }

// FilesPerProcess is how many files a running process takes in the one that
// started it: three pipes and a handle.
const FilesPerProcess = 4

// stopTimeout is how long a process may take to end after its input has.
const stopTimeout = 20 * time.Second

// Stop ends the process: it closes the input, and kills the process if that does
// not end it within 20 s. Stop returns when the process has been reaped.
func (p *Process) Stop() {
	p.CloseInput()
	select {
	case <-p.Ended():
	case <-time.After(stopTimeout):
		p.Kill()
		<-p.Ended()
	}
}

// Stop stops processes, all at the same time. Ranks without a process are nil.
func Stop(processes []*Process) {
	var stopping sync.WaitGroup
	for _, p := range processes {
		if p != nil {
			stopping.Go(p.Stop)
		}
	}
	stopping.Wait()
}

// Kill kills processes and returns when all have been reaped. Ranks without a
// process are nil.
func Kill(processes []*Process) {
	for _, p := range processes {
		if p != nil {
			p.Kill()
		}
	}
	for _, p := range processes {
		if p != nil {
			<-p.Ended()
			p.CloseInput()
		}
	}
}

// FirstEnded returns the lowest rank whose process has ended.
func FirstEnded(processes []*Process) (rank int, p *Process, ok bool) {
	for rank, p := range processes {
		if p == nil {
			continue
		}
		select {
		case <-p.Ended():
			return rank, p, true
		default:
		}
	}
	return 0, nil, false
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
