package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/pleach-go/pleach/lab/bench/etcd"
)

// patience bounds all waits.
const patience = 60 * time.Second

// contest is the processes of a system that contend for leases.
type contest struct {
	*Config
	system  string
	cluster *etcd.Cluster // of etcd
	vacant  []time.Duration

	mu      sync.Mutex
	holders []*process // by lease; nil: none
	since   []time.Time
	running []*process
	two     int
	changed chan struct{} // closed at the next change
}

// process is one of them.
type process struct {
	cmd     *exec.Cmd
	address string // of a member of Pleach
	ready   bool
	dead    bool
	done    chan struct{} // closed when its reports have ended
}

// start starts the processes of a system, and waits until every lease is held.
func (c *Config) start(ctx context.Context, system string) (*contest, error) {
	k := &contest{
		Config: c, system: system, holders: make([]*process, c.Leases), since: make([]time.Time, c.Leases),
		running: make([]*process, c.Processes), changed: make(chan struct{}),
	}
	if system == etcdName {
		var err error
		k.cluster, err = etcd.Start(ctx, c.Processes)
		if err != nil {
			return nil, err
		}
	}
	for i := range k.running {
		if err := k.startProcess(ctx, i); err != nil {
			return k, err
		}
	}
	return k, k.await(ctx, k.allHeld)
}

// startProcess starts a process, and waits until it contends.
func (k *contest) startProcess(ctx context.Context, i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"holder", k.system, k.TTL.String(), fmt.Sprint(k.Leases), fmt.Sprint("process-", i)}
	if k.cluster != nil {
		args = append(args, k.cluster.URLs[i])
	}
	k.mu.Lock()
	for _, p := range k.running {
		if k.cluster == nil && p != nil {
			args = append(args, p.address)
		}
	}
	k.mu.Unlock()
	p := &process{cmd: &exec.Cmd{Path: self, Args: args, Stderr: os.Stderr}, done: make(chan struct{})}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	k.mu.Lock()
	k.running[i] = p
	k.mu.Unlock()
	go k.follow(p, out)
	return k.await(ctx, func() bool { return p.ready })
}

// follow reads what a process reports: its address, "held LEASE" and "lost LEASE".
func (k *contest) follow(p *process, out io.Reader) {
	defer close(p.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var word, rest string
		_, _ = fmt.Sscan(lines.Text(), &word, &rest)
		now := time.Now()
		k.mu.Lock()
		var lease int
		_, _ = fmt.Sscan(rest, &lease)
		switch word {
		case "ready":
			p.ready, p.address = true, rest
		case "held":
			if other := k.holders[lease]; other != nil && !other.dead {
				k.two++
			}
			k.holders[lease], k.since[lease] = p, now
		case "lost":
			if k.holders[lease] == p {
				k.holders[lease] = nil
			}
		}
		close(k.changed)
		k.changed = make(chan struct{})
		k.mu.Unlock()
	}
}

// allHeld reports whether processes that live hold all leases.
func (k *contest) allHeld() bool {
	for _, p := range k.holders {
		if p == nil || p.dead {
			return false
		}
	}
	return true
}

var errLate = errors.New("leases have no holders for too long")

// await waits until something is so.
func (k *contest) await(ctx context.Context, so func() bool) error {
	late := time.After(patience)
	for {
		k.mu.Lock()
		done, changed := so(), k.changed
		k.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-late:
			return errLate
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// killHolder kills the process that holds the most leases, measures until others hold them, and
// starts it again.
func (k *contest) killHolder(ctx context.Context) error {
	k.mu.Lock()
	held := map[*process][]int{}
	for lease, p := range k.holders {
		held[p] = append(held[p], lease)
	}
	victim := 0
	for i, p := range k.running {
		if len(held[p]) > len(held[k.running[victim]]) {
			victim = i
		}
	}
	p := k.running[victim]
	k.mu.Unlock()
	killed := time.Now()
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.done
	_ = p.cmd.Wait() // it was killed
	k.mu.Lock()
	p.dead = true
	k.mu.Unlock()
	if err := k.await(ctx, k.allHeld); err != nil {
		return err
	}
	k.mu.Lock()
	for _, lease := range held[p] {
		k.vacant = append(k.vacant, k.since[lease].Sub(killed))
	}
	k.running[victim] = nil
	k.mu.Unlock()
	return k.startProcess(ctx, victim)
}

// close ends the processes.
func (k *contest) close() {
	for _, p := range k.running {
		if p != nil {
			_ = p.cmd.Process.Kill()
			<-p.done
			_ = p.cmd.Wait()
		}
	}
	if k.cluster != nil {
		k.cluster.Close()
	}
}
