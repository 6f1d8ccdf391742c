package launch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// HostError says what a host of a job lacks, or why it cannot be reached.
type HostError struct {
	Host string
	Err  error
}

func (e *HostError) Error() string { return fmt.Sprintf("host %s: %v", e.Host, e.Err) }

func (e *HostError) Unwrap() error { return e.Err }

// remotes are the hosts of a running job, in order of rank.
type remotes []*remote

// remote is the launcher's side of a host.
type remote struct {
	Host
	first     int // rank
	silence   time.Duration
	ssh       *Process
	output    *os.File // of ssh
	orders    *encoder
	events    *gob.Decoder
	addresses []string
	notice    func(format string, args ...any)

	mu        sync.Mutex
	lost      bool
	processes map[int]*remoteProcess // by rank, the newest
}

// connectHosts starts the ends of a job on its hosts. When it returns, the sockets of all
// ranks are open, and each host has found the program.
func (j *Job) connectHosts(group string) (_ remotes, err error) {
	var all remotes
	first := 0
	for _, h := range j.Hosts.List {
		all = append(all, &remote{
			Host: h, first: first, silence: cmp.Or(j.Hosts.Silence, 15*time.Second),
			notice: j.Output.notice, processes: map[int]*remoteProcess{},
		})
		first += h.Slots
	}
	defer func() {
		if err != nil {
			all.Close()
		}
	}()
	for _, h := range all { // in this goroutine, as processes end with the thread that starts them
		if err := h.startSSH(j.Hosts); err != nil {
			return nil, &HostError{h.Name, err}
		}
	}
	if err := all.each((*remote).meet); err != nil {
		return nil, err
	}
	addresses, err := all.addresses()
	if err != nil {
		return nil, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	p := &programOrder{
		Group: group, Secret: newSecret(), Addresses: addresses, Folder: folder, Args: j.Args,
		Env: append(ownVariables(), j.Env...),
	}
	if err := all.each(func(h *remote) error { return h.prepare(p) }); err != nil {
		return nil, err
	}
	for _, h := range all {
		go h.receive()
	}
	return all, nil
}

// each does something with all hosts at the same time.
func (all remotes) each(do func(*remote) error) error {
	var doing sync.WaitGroup
	errs := make([]error, len(all))
	for i, h := range all {
		doing.Go(func() {
			if err := do(h); err != nil {
				errs[i] = &HostError{h.Name, err}
			}
		})
	}
	doing.Wait()
	return errors.Join(errs...)
}

// addresses returns those of all ranks, if all hosts can reach them.
func (all remotes) addresses() (list []string, err error) {
	var loopback *remote
	others := false
	for _, h := range all {
		host, _, err := net.SplitHostPort(h.addresses[0])
		if err != nil {
			return nil, &HostError{h.Name, err}
		}
		if net.ParseIP(host).IsLoopback() {
			loopback = h
		} else {
			others = true
		}
		list = append(list, h.addresses...)
	}
	if loopback != nil && others {
		return nil, &HostError{
			loopback.Name,
			errors.New("it is reached by loopback, and other hosts cannot: write its address in their network"),
		}
	}
	return list, nil
}

// ownVariables are the settings that the launcher was given for the job's processes.
func ownVariables() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !strings.HasPrefix(name, "PLEACH_") || slices.Contains(ownedVariables, name)
	})
}

// startSSH starts this program on the host.
func (h *remote) startSSH(hosts *Hosts) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	h.output = read
	path, err := exec.LookPath(hosts.SSH[0])
	if err != nil {
		return err
	}
	args := append(slices.Clone(hosts.SSH), h.Name, quote(hosts.Pleach)+" host")
	h.ssh, err = Start(Command{
		Program: path, Args: args, Stdout: write, Stderr: &hostLines{host: h}, Input: true, DieWithParent: true,
	})
	if err == nil {
		h.orders = newEncoder(h.ssh.Input())
	}
	return err
}

// quote makes one word of a path for the shell of a host.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// Read reads what the host says. It ends when the host is silent. Time in which the launcher
// does not read, because its own output is slow, does not count.
func (h *remote) Read(b []byte) (int, error) {
	limit := h.silence
	if h.events == nil {
		limit = hostStart
	}
	if err := h.output.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	n, err := h.output.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no word for %v", limit)
	}
	return n, err
}

// maxGreeting bounds what the start files of a shell print before the host's end runs.
const maxGreeting = 1 << 16

// meet waits for the host's end and has it open sockets.
func (h *remote) meet() error {
	in := bufio.NewReader(h)
	for read := 0; ; {
		line, err := in.ReadString('\n')
		read += len(line)
		if strings.TrimSpace(line) == greeting {
			break
		}
		if err != nil {
			return fmt.Errorf("pleach does not run there: %w", h.explain(err))
		}
		if read > maxGreeting || strings.HasPrefix(line, "pleach host ") {
			return fmt.Errorf("pleach there is of another version, or prints something else: %.80q", line)
		}
	}
	h.events = gob.NewDecoder(in)
	e, err := h.ask(&order{Kind: orderListen, Listen: &listenOrder{h.Name, h.first, h.Slots}}, eventListening)
	if err != nil {
		return err
	}
	if len(e.Addresses) != h.Slots {
		return fmt.Errorf("%d addresses for %d processes", len(e.Addresses), h.Slots)
	}
	h.addresses = e.Addresses
	return nil
}

// explain says how ssh has ended, if it has: what it printed was shown.
func (h *remote) explain(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	<-h.ssh.Ended()
	if code := h.ssh.State().ExitCode(); code == 127 {
		return errors.New("the program is not found there: install it, or name its path by --remote-pleach")
	}
	return fmt.Errorf("%s: %v", h.ssh.cmd.Args[0], h.ssh.State())
}

func (h *remote) prepare(p *programOrder) error {
	_, err := h.ask(&order{Kind: orderProgram, Program: p}, eventReady)
	return err
}

// ask gives an order and waits for its answer.
func (h *remote) ask(o *order, want eventKind) (*event, error) {
	if err := h.orders.write(o); err != nil {
		return nil, h.explain(err)
	}
	for {
		var e event
		if err := h.events.Decode(&e); err != nil {
			return nil, h.explain(err)
		}
		switch e.Kind {
		case want:
			return &e, nil
		case eventFailed:
			return nil, errors.New(e.Text)
		}
	}
}

// receive takes what the host says until it ends, or says nothing any more.
func (h *remote) receive() {
	for {
		var e event
		if err := h.events.Decode(&e); err != nil {
			h.lose(err)
			return
		}
		h.mu.Lock()
		p := h.processes[e.Rank]
		h.mu.Unlock()
		if p == nil {
			continue // a beat before the first process
		}
		switch e.Kind {
		case eventStdout:
			_, _ = p.stdout.Write(e.Output) // see drain.copyTo
		case eventStderr:
			_, _ = p.stderr.Write(e.Output)
		case eventReport:
			_, _ = p.reports.Write(e.Output)
		case eventTaken:
			p.taken <- struct{}{}
		case eventEnded:
			p.end(exit{at: time.Now(), code: e.Code, signal: e.Signal})
		case eventFailed:
			p.end(exit{at: time.Now(), code: -1, lost: e.Text})
		}
	}
}

// lose ends the processes of a host that is gone.
func (h *remote) lose(err error) {
	h.mu.Lock()
	h.lost = true
	var left []*remoteProcess
	for _, p := range h.processes {
		if !p.over() {
			left = append(left, p)
		}
	}
	h.mu.Unlock()
	if len(left) == 0 {
		return // as all ended, or had
	}
	h.notice("host %s is lost, and with it %d processes: %v", h.Name, len(left), explainLoss(err))
	h.ssh.Kill()
	for _, p := range left {
		p.end(exit{at: time.Now(), code: -1, lost: "lost with host " + h.Name})
	}
}

func explainLoss(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("its connection has ended")
	}
	return err
}

// startRank has the host of a rank start its process.
func (all remotes) startRank(rank int, c Command) (worker, error) {
	i, found := slices.BinarySearchFunc(all, rank, func(h *remote, rank int) int { return h.first - rank })
	if !found {
		i--
	}
	h := all[i]
	p := &remoteProcess{
		host: h, rank: rank, stdout: c.Stdout, stderr: c.Stderr, reports: c.Reports,
		taken: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	h.mu.Lock()
	h.processes[rank] = p
	lost := h.lost
	h.mu.Unlock()
	if lost {
		return nil, &HostError{h.Name, errors.New("it is lost")}
	}
	o := &order{Kind: orderStart, Rank: rank, Env: c.Env}
	if c.Input {
		o.Kind = orderStartWithInput
	}
	_ = h.orders.write(o) // if the host is gone, receive notices
	return p, nil
}

// Close ends the hosts' ends, which have no process left, and ssh with them.
func (all remotes) Close() error {
	var ssh []*Process
	for _, h := range all {
		if h.ssh != nil {
			ssh = append(ssh, h.ssh)
		}
	}
	Stop(ssh)
	for _, h := range all {
		if h.output != nil {
			h.output.Close()
		}
	}
	return nil
}

// remoteProcess is a process of a job on another host.
type remoteProcess struct {
	host           *remote
	rank           int
	stdout, stderr io.Writer
	reports        io.Writer
	taken          chan struct{} // the host has written its input
	ended          chan struct{}
	how            exit
}

func (p *remoteProcess) Kill()                  { p.order(orderKill) }
func (p *remoteProcess) Terminate()             { p.order(orderTerminate) }
func (p *remoteProcess) Suspend()               { p.order(orderSuspend) }
func (p *remoteProcess) Resume()                { p.order(orderResume) }
func (p *remoteProcess) Ended() <-chan struct{} { return p.ended }
func (p *remoteProcess) exit() exit             { return p.how }

func (p *remoteProcess) order(kind orderKind) {
	_ = p.host.orders.write(&order{Kind: kind, Rank: p.rank}) // to a host that is gone: see remote.lose
}

// Write hands input to the process and waits until its pipe has it: orders for other
// processes must not wait behind it.
func (p *remoteProcess) Write(b []byte) (int, error) {
	if err := p.host.orders.write(&order{Kind: orderInput, Rank: p.rank, Input: b}); err != nil {
		return 0, err
	}
	select {
	case <-p.taken:
		return len(b), nil
	case <-p.ended:
		return 0, io.ErrClosedPipe
	}
}

func (p *remoteProcess) feed(r io.Reader) {
	_, _ = io.Copy(p, r)
	p.order(orderCloseInput)
}

func (p *remoteProcess) end(how exit) {
	p.how = how
	close(p.ended)
}

func (p *remoteProcess) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// hostLines shows what ssh and the host's end complain about.
type hostLines struct {
	host    *remote
	partial []byte
}

func (l *hostLines) Write(b []byte) (int, error) {
	l.partial = append(l.partial, b...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte{'\n'})
		if !whole {
			return len(b), nil
		}
		l.host.notice("host %s: %s", l.host.Name, bytes.TrimSpace(line))
		l.partial = rest
	}
}
