//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// filesPerProcess is what this process needs for one: a socket until it is
// started, its input, and a handle.
const filesPerProcess = 3

// patience is how long processes may take to start, to answer and to end.
const patience = 20 * time.Second

// remote is a group whose members are processes.
type remote struct {
	plan      *plan
	processes []*memberProcess // nil: dead
	reports   *reports
	bursts    uint64

	// What members have reported.
	ready   int
	arrived []uint64 // bursts, by rank
	last    uint64   // when the last burst that counts was there
	began   uint64   // when the root began
	missing int      // members that have yet to report the burst
	totals  []counts
	got     []uint64 // messages, by rank
	counted int
}

// memberProcess is the process of one rank.
type memberProcess struct {
	command *exec.Cmd
	input   io.WriteCloser
	ended   chan struct{}
}

func newRemote(ctx context.Context, command []string, p *plan) (_ *remote, err error) {
	listeners, addresses, err := p.listen()
	if err != nil {
		return nil, err
	}
	defer closeListeners(listeners)
	in, out, err := openReports()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	g := &remote{
		plan: p, processes: make([]*memberProcess, p.members), reports: in,
		arrived: make([]uint64, p.members), totals: make([]counts, p.members), got: make([]uint64, p.members),
	}
	args := append(slices.Clone(command), p.system.name, strconv.Itoa(p.size), strconv.Itoa(p.burst))
	for rank, l := range listeners {
		if l == nil {
			continue
		}
		socket, err := l.File()
		if err == nil {
			g.processes[rank], err = startProcess(args, environment(rank, addresses), socket, out)
			socket.Close()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: cannot start rank %d: %w", rank, err), g.close())
		}
	}
	closeListeners(listeners) // only the processes may hold them, so that their death is seen
	if err := g.await(ctx, patience, func() bool { return g.ready == p.live() }); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: %s: %d of %d processes started: %w", p.system.name, g.ready, p.live(), err), g.close())
	}
	return g, nil
}

// environment is what package bootstrap understands.
func environment(rank int, addresses []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PLEACH_") })
	return append(env,
		"PLEACH_RANK="+strconv.Itoa(rank), "PLEACH_SIZE="+strconv.Itoa(len(addresses)),
		"PLEACH_ADDRESSES="+strings.Join(addresses, ","), "PLEACH_GROUP=bench",
		"PLEACH_LISTEN_FD="+strconv.Itoa(listenFile))
}

func startProcess(args, env []string, socket, report *os.File) (*memberProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &memberProcess{ended: make(chan struct{}), command: &exec.Cmd{
		Path: program, Args: args, Env: env, Stderr: os.Stderr,
		ExtraFiles: []*os.File{socket, report}, // numbers 3 and 4
		// Ctrl-C is for this process; the others end with their input.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}}
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.command.Wait() // its state tells
		close(p.ended)
	}()
	return p, nil
}

// tell gives a command.
func (p *memberProcess) tell(command byte) error {
	_, err := p.input.Write([]byte{command})
	return err
}

func (g *remote) broadcast(ctx context.Context, limit time.Duration) (outcome, error) {
	g.bursts++
	g.began, g.last, g.missing = 0, 0, g.plan.reachable
	if err := g.processes[0].tell(commandBroadcast); err != nil {
		return outcome{}, err
	}
	err := g.await(ctx, limit, func() bool { return g.missing == 0 && g.began > 0 })
	if err != nil && !errors.Is(err, errTooLate) {
		return outcome{}, err
	}
	time.Sleep(settling)
	switch {
	case g.plan.reachable < g.plan.live()-1:
		return outcome{}, nil
	case err == nil:
		return outcome{complete: g.plan.burst, took: time.Duration(g.last - g.began)}, nil
	}
	if _, err := g.counts(); err != nil {
		return outcome{}, err
	}
	return outcome{complete: min(g.least(), g.plan.burst-1)}, nil
}

// least is how many messages of this burst every live member has.
func (g *remote) least() int {
	before := (g.bursts - 1) * uint64(g.plan.burst)
	least := before + uint64(g.plan.burst)
	for rank, p := range g.processes {
		if rank != 0 && p != nil {
			least = min(least, g.got[rank])
		}
	}
	return int(max(least, before) - before)
}

func (g *remote) counts() (counts, error) {
	g.counted = 0
	for _, p := range g.processes {
		if p != nil {
			if err := p.tell(commandCount); err != nil {
				return counts{}, err
			}
		}
	}
	if err := g.await(context.Background(), patience, func() bool { return g.counted == g.plan.live() }); err != nil {
		return counts{}, fmt.Errorf("bench: %s: %d of %d processes told what they counted: %w", g.plan.system.name, g.counted, g.plan.live(), err)
	}
	var sum counts
	for _, c := range g.totals {
		sum = sum.plus(c)
	}
	return sum, nil
}

var errTooLate = errors.New("too late")

// pause is how long to wait for reports. Looking at every single one as it comes
// would take the processor from members that are not done.
const pause = 300 * time.Microsecond

// await takes reports until there are enough.
func (g *remote) await(ctx context.Context, limit time.Duration, enough func() bool) error {
	return await(ctx, limit, enough, func() (some bool, err error) {
		if some, err = g.reports.read(g.take); err == nil && !some {
			err = death(g.plan.system.name, g.processes)
		}
		return some, err
	})
}

// await reads until there is enough.
func await(ctx context.Context, limit time.Duration, enough func() bool, read func() (some bool, err error)) error {
	deadline := time.Now().Add(limit)
	for !enough() {
		some, err := read()
		switch {
		case err != nil:
			return err
		case some:
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return errTooLate
		}
		time.Sleep(pause)
	}
	return nil
}

// take takes a report.
func (g *remote) take(r record) {
	if int(r.rank) >= len(g.processes) {
		return
	}
	total := &g.totals[r.rank]
	switch r.kind {
	case recordReady:
		g.ready++
	case recordBegan:
		g.began = r.value
	case recordArrived:
		if g.arrived[r.rank]++; g.arrived[r.rank] == g.bursts {
			g.missing--
			g.last = max(g.last, r.value)
		}
	case recordReceived:
		g.got[r.rank] = r.value
	case recordFrames:
		total.frames = r.value
	case recordBytes:
		total.bytes = r.value
	case recordCPU:
		total.cpu = time.Duration(r.value)
		g.counted++
	}
}

// death tells of a process that should be there and is not.
func death(system string, processes []*memberProcess) error {
	for rank, p := range processes {
		if p == nil {
			continue
		}
		select {
		case <-p.ended:
			return fmt.Errorf("bench: %s: the process of rank %d has ended: %v", system, rank, p.command.ProcessState)
		default:
		}
	}
	return nil
}

func (g *remote) close() error {
	endProcesses(g.processes)
	return g.reports.close()
}

// endProcesses ends all at the same time.
func endProcesses(processes []*memberProcess) {
	var closing sync.WaitGroup
	for _, p := range processes {
		if p == nil {
			continue
		}
		closing.Go(func() {
			p.input.Close()
			select {
			case <-p.ended:
			case <-time.After(patience):
				_ = p.command.Process.Kill()
				<-p.ended
			}
		})
	}
	closing.Wait()
}
