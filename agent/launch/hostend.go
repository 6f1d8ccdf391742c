package launch

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// hostEnd is a host's end of a job. One goroutine carries the orders out.
type hostEnd struct {
	events    *encoder
	sockets   *Sockets
	program   *programOrder
	path      string           // the program's
	processes map[int]*Process // by rank, the newest
}

// Serve is a host's end of a job: it carries out the orders that it reads, until they end.
// Then it kills the processes that it has started.
func Serve(orders io.Reader, events io.Writer) error {
	runtime.LockOSThread() // Linux kills children with the thread that started them
	defer runtime.UnlockOSThread()
	if _, err := fmt.Fprintln(events, greeting); err != nil {
		return err
	}
	h := &hostEnd{events: newEncoder(events), processes: map[int]*Process{}}
	defer h.close()
	go h.beat()
	decoder := gob.NewDecoder(orders)
	for {
		var o order
		if err := decoder.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		h.do(o)
	}
}

func (h *hostEnd) close() {
	for _, p := range h.processes {
		p.Kill()
	}
	for _, p := range h.processes {
		<-p.Ended()
	}
	if h.sockets != nil {
		h.sockets.Close()
	}
}

// beat tells the launcher that this host is there. A launcher that is cut off is noticed
// because the connection of ssh breaks under it.
func (h *hostEnd) beat() {
	for h.events.write(&event{Kind: eventBeat}) == nil {
		time.Sleep(beat)
	}
}

func (h *hostEnd) do(o order) {
	p := h.processes[o.Rank]
	switch {
	case o.Kind == orderListen:
		h.listen(o.Listen)
	case o.Kind == orderProgram:
		h.prepare(o.Program)
	case o.Kind == orderStart || o.Kind == orderStartWithInput:
		h.start(&o)
	case p == nil: // it could not be started
	case o.Kind == orderInput:
		go func() {
			_, _ = p.Input().Write(o.Input) // a process that reads no more loses it
			h.tell(event{Kind: eventTaken, Rank: o.Rank}, nil)
		}()
	case o.Kind == orderCloseInput:
		p.CloseInput()
	case o.Kind == orderKill:
		p.Kill()
	case o.Kind == orderTerminate:
		p.Terminate()
	case o.Kind == orderSuspend:
		p.Suspend()
	case o.Kind == orderResume:
		p.Resume()
	}
}

// tell sends an event, or the error instead of it.
func (h *hostEnd) tell(e event, err error) {
	if err != nil {
		e = event{Kind: eventFailed, Rank: e.Rank, Text: err.Error()}
	}
	_ = h.events.write(&e) // without a launcher, Serve ends
}

func (h *hostEnd) listen(o *listenOrder) {
	ip, err := ownAddress(o.Host)
	if err == nil {
		h.sockets, err = listenAt(ip, o.First, o.Count)
	}
	e := event{Kind: eventListening}
	if err == nil {
		e.Addresses = h.sockets.Addresses
	}
	h.tell(e, err)
}

// ownAddress is the address of this host at which the launcher has reached it, as sshd tells
// it: names in the launcher's ssh configuration mean nothing to other hosts. Without sshd,
// it is that of the host's name.
func ownAddress(host string) (net.IP, error) {
	if f := strings.Fields(os.Getenv("SSH_CONNECTION")); len(f) == 4 {
		if ip := net.ParseIP(f[2]); ip != nil {
			return ip, nil
		}
	}
	addresses, err := net.LookupIP(host[strings.LastIndexByte(host, '@')+1:])
	if err != nil {
		return nil, err
	}
	return addresses[0], nil
}

// prepare finds the program in the directory in which the launcher was started. Where there is
// no such directory, it is that in which ssh starts commands.
func (h *hostEnd) prepare(o *programOrder) {
	h.program = o
	folder := os.Chdir(o.Folder)
	path, err := exec.LookPath(o.Args[0])
	if err == nil {
		h.path, err = path, h.sockets.complete(o.Group, o.Secret, o.Addresses)
	} else if err = fmt.Errorf("cannot run %s: %w", o.Args[0], errors.Unwrap(err)); folder != nil {
		err = fmt.Errorf("%w (and there is no directory %s)", err, o.Folder)
	}
	h.tell(event{Kind: eventReady}, err)
}

func (h *hostEnd) start(o *order) {
	env := append(append([]string{}, h.program.Env...), o.Env...)
	p, err := h.sockets.Start(o.Rank, Command{
		Program: h.path, Args: h.program.Args, Env: env, DieWithParent: true, Input: o.Kind == orderStartWithInput,
		Stdout: h.stream(eventStdout, o.Rank), Stderr: h.stream(eventStderr, o.Rank), Reports: h.stream(eventReport, o.Rank),
	})
	if err != nil {
		h.tell(event{Rank: o.Rank}, err)
		return
	}
	h.processes[o.Rank] = p
	go func() {
		<-p.Ended()
		e := p.exit()
		h.tell(event{Kind: eventEnded, Rank: o.Rank, Code: e.code, Signal: e.signal}, nil)
	}()
}

// stream sends what a process prints.
type stream struct {
	to   *encoder
	kind eventKind
	rank int
}

func (h *hostEnd) stream(kind eventKind, rank int) stream { return stream{h.events, kind, rank} }

func (s stream) Write(b []byte) (int, error) {
	return len(b), s.to.write(&event{Kind: s.kind, Rank: s.rank, Output: b})
}
