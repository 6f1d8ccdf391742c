package launch

// A job on several hosts has an end on each of them: this program again, started by ssh. It
// opens the sockets of its ranks on ports that are free there, and starts their processes
// when it has received the addresses of all. What both ends say goes over the standard
// streams of ssh, the environment included: arguments can be seen by all users of a host.

import (
	"encoding/gob"
	"io"
	"sync"
	"syscall"
	"time"
)

// greeting is the first line of a host's end, behind whatever the shell's start files print.
// Its number changes with the messages.
const greeting = "pleach host 2"

const (
	// beat is how often a host's end says that it is there.
	beat = time.Second
	// hostStart is how long a host may take to answer at first.
	hostStart = 60 * time.Second
)

// order is what the launcher tells a host's end.
type order struct {
	Kind    orderKind
	Rank    int
	Listen  *listenOrder
	Program *programOrder
	Env     []string // added for the process to start
	Input   []byte
}

type orderKind int

const (
	orderListen orderKind = iota + 1
	orderProgram
	orderStart
	orderStartWithInput
	orderInput
	orderCloseInput
	orderKill
	orderTerminate
	orderSuspend
	orderResume
)

// listenOrder says for which ranks sockets are opened.
type listenOrder struct {
	Host         string // as the launcher calls it
	First, Count int
}

// programOrder says what all processes run.
type programOrder struct {
	Group     string
	Secret    string   // of the job
	Addresses []string // of all ranks
	Folder    string   // in which the launcher was started
	Args, Env []string
}

// event is what a host's end tells the launcher.
type event struct {
	Kind      eventKind
	Rank      int
	Addresses []string // of the host's ranks
	Text      string   // why something cannot be done
	Output    []byte
	Code      int
	Signal    syscall.Signal
}

type eventKind int

const (
	eventBeat eventKind = iota + 1
	eventListening
	eventReady
	eventFailed
	eventStdout
	eventStderr
	eventTaken
	eventEnded
	eventReport
)

// encoder writes messages of several goroutines.
type encoder struct {
	mu sync.Mutex
	to *gob.Encoder
}

func newEncoder(w io.Writer) *encoder { return &encoder{to: gob.NewEncoder(w)} }

// write returns an error when the other end is gone, which its reader notices too.
func (e *encoder) write(message any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.to.Encode(message)
}
