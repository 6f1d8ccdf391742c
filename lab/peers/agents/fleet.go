package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// patience is how long agents may take to start, to agree on their members, to pass an event
// on, and to notice a death. Serf needs ten seconds for the last.
const patience = time.Minute

// agent is one member, as its clients see it.
type agent interface {
	// join makes it a member, if it has not joined automatically.
	join() error
	// alive lists the members that are alive for it, by name.
	alive(ctx context.Context) ([]string, error)
	// subscribe calls got with the text of each event. It returns when that has begun.
	subscribe(ctx context.Context, got func(text string)) error
	// send sends an event to all members, this one included.
	send(ctx context.Context, text string) error
	close() error
}

// starter makes the command of the agent with a number, and connects to that agent when it
// runs.
type starter func(f *fleet, i int) (args []string, connect func() (agent, error))

var starters = map[string]starter{
	"pleach":     startPleach,
	"serf":       startSerf("lan"),
	"serf-local": startSerf("local"),
}

func names() []string { return []string{"pleach", "serf", "serf-local"} }

// fleet is all agents of a system.
type fleet struct {
	system    string
	dir       string   // for sockets and the output of agents
	addresses []string // of agents
	local     []string // of their interfaces for clients, where that is TCP
	processes []*exec.Cmd
	agents    []agent // nil: killed
}

// nameOf is the name of the agent with a number.
func nameOf(i int) string { return fmt.Sprintf("agent%d", i) }

// startFleet starts all agents, and returns when all know all.
func startFleet(ctx context.Context, system, bin, dir string, n int) (f *fleet, err error) {
	f = &fleet{system: system, dir: filepath.Join(dir, system), agents: make([]agent, n)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", system, err), f.close())
		}
	}()
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return f, err
	}
	ports, err := freePorts(2 * n)
	if err != nil {
		return f, err
	}
	f.addresses, f.local = ports[:n], ports[n:]
	connects := make([]func() (agent, error), n)
	for i := range n {
		args, connect := starters[system](f, i)
		if err := f.start(filepath.Join(bin, args[0]), args[1:], i); err != nil {
			return f, err
		}
		connects[i] = connect
	}
	for i, connect := range connects {
		if err := f.connect(ctx, i, connect); err != nil {
			return f, err
		}
	}
	return f, f.awaitMembers(ctx)
}

// start starts a process. It dies with this one.
func (f *fleet) start(program string, args []string, i int) error {
	output, err := os.Create(filepath.Join(f.dir, nameOf(i)+".log"))
	if err != nil {
		return err
	}
	defer output.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	f.processes = append(f.processes, cmd)
	return cmd.Start()
}

func (f *fleet) connect(ctx context.Context, i int, connect func() (agent, error)) error {
	return await(ctx, 50*time.Millisecond, func() error {
		if f.agents[i] == nil {
			a, err := connect()
			if err != nil {
				return err
			}
			f.agents[i] = a
		}
		return f.agents[i].join()
	})
}

// awaitMembers waits until all agents know all.
func (f *fleet) awaitMembers(ctx context.Context) error {
	for i, a := range f.agents {
		err := await(ctx, 50*time.Millisecond, func() error {
			alive, err := a.alive(ctx)
			if err == nil && len(alive) != len(f.agents) {
				err = fmt.Errorf("%s knows %d of %d members", nameOf(i), len(alive), len(f.agents))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// close ends all agents.
func (f *fleet) close() error {
	var errs []error
	for _, a := range f.agents {
		if a != nil {
			errs = append(errs, a.close())
		}
	}
	var ending sync.WaitGroup
	for _, p := range f.processes {
		if p.Process != nil && p.ProcessState == nil {
			_ = p.Process.Kill()
			ending.Go(func() { _ = p.Wait() })
		}
	}
	ending.Wait()
	return errors.Join(errs...)
}

// await tries until there is no error, or patience ends.
func await(ctx context.Context, pause time.Duration, try func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Ports of agents are below those that the system gives to outgoing connections: agents that
// start earlier would take those of later ones.
const firstPort, lastPort = 10_000, 32_000

// freePorts returns loopback addresses whose ports are free.
func freePorts(n int) (addresses []string, err error) {
	for port := firstPort + rand.IntN((lastPort-firstPort)/2); len(addresses) < n; port++ {
		if port == lastPort {
			return nil, fmt.Errorf("no %d free ports below %d", n, lastPort)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
