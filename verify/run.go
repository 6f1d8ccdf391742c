package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// summary counts what was run and found.
type summary struct {
	rounds, faults, processes, views, deliveries, receipts, calls, serves, results int
	took                                                                           time.Duration
	undecided                                                                      int // registers that porcupine gave up on
}

func (s summary) String() string {
	return fmt.Sprintf("%d rounds in %v: %d faults, %d processes, %d views, %d deliveries, %d receipts, %d calls, %d of them served, %d results of jobs; %d registers undecided",
		s.rounds, s.took.Round(time.Second), s.faults, s.processes, s.views, s.deliveries, s.receipts, s.calls, s.serves, s.results, s.undecided)
}

// violationsError is a round that was not right.
type violationsError struct {
	seed       uint64
	dir        string
	violations []violation
}

func (e *violationsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "verify: seed %d: %d violations; see %s", e.seed, len(e.violations), filepath.Join(e.dir, "timeline.html"))
	for i, v := range e.violations {
		if i == 5 {
			break
		}
		fmt.Fprintf(&b, "\n  %s: %s", v.rule, v.text)
	}
	return b.String()
}

// run runs rounds until the time is over, or a rule is violated.
func (c *config) run() (s summary, err error) {
	began := time.Now()
	defer func() { s.took = time.Since(began) }()
	for seed := c.seed; time.Since(began) < c.time && err == nil; seed++ {
		err = c.runRound(seed, &s)
		s.rounds++
		if err == nil {
			fmt.Printf("seed %d: right (%v)\n", seed, time.Since(began).Round(time.Second))
		}
	}
	return s, err
}

// runRound runs one group from its beginning to its end, and checks its histories.
func (c *config) runRound(seed uint64, s *summary) error {
	r := &round{config: *c, seed: seed, dir: filepath.Join(c.dir, fmt.Sprint("seed-", seed)), hosts: make([]host, c.members)}
	if err := errors.Join(os.RemoveAll(r.dir), os.MkdirAll(filepath.Join(r.dir, "store"), 0o700)); err != nil {
		return err
	}
	histories, job, err := r.play()
	if err != nil {
		return err
	}
	violations := append(check(histories, r.faults, s), checkJob(r.members, job, s)...)
	if len(violations) == 0 {
		return os.RemoveAll(r.dir)
	}
	if err := writeTimeline(filepath.Join(r.dir, "timeline.html"), seed, histories, r.faults, violations); err != nil {
		return err
	}
	return &violationsError{seed, r.dir, violations}
}

// round is a group that runs.
type round struct {
	config
	seed      uint64
	dir       string
	network   *network
	hosts     []host
	processes []string // all that were started
	faults    []Event
}

// host is where a member runs.
type host struct {
	cmd    *exec.Cmd
	starts int
	pulse  chan struct{} // ends the pulse of a slow process
	pulsed chan struct{} // closed when it has ended
}

// play runs the group and the nemesis, and then the job, and returns what the processes have
// seen.
func (r *round) play() (group, job []*history, err error) {
	if r.network, err = newNetwork(r.members); err != nil {
		return nil, nil, err
	}
	defer r.network.remove()
	defer func() {
		for i := range r.hosts {
			_ = r.kill(i)
		}
	}()
	for i := range r.hosts {
		if err := r.start(i); err != nil {
			return nil, nil, err
		}
	}
	n := &nemesis{rand.New(rand.NewPCG(r.seed, 0)), r}
	time.Sleep(2 * time.Second)
	if err := n.run(time.Now().Add(r.round)); err != nil {
		return nil, nil, err
	}
	time.Sleep(12 * time.Second) // all are members again
	r.end()
	if group, err = r.read(); err != nil {
		return nil, nil, err
	}
	job, err = r.playJob()
	return group, job, err
}

// read reads what the processes of the group have seen.
func (r *round) read() (histories []*history, err error) {
	for _, process := range r.processes {
		h, err := readHistory(process, filepath.Join(r.dir, process+".jsonl"))
		if errors.Is(err, os.ErrNotExist) { // killed before it began
			continue
		}
		if err != nil {
			return nil, err
		}
		histories = append(histories, h)
	}
	return histories, nil
}

// start starts the member of a host, unless it runs.
func (r *round) start(i int) error {
	h := &r.hosts[i]
	if h.cmd != nil {
		return nil
	}
	h.starts++
	id := fmt.Sprint("m", i)
	process := fmt.Sprint(id, "#", h.starts)
	var seeds []string
	for j := range r.hosts {
		seeds = append(seeds, r.network.address(j)+":7000")
	}
	h.cmd = r.network.command(i, r.program, "member", "--id", id, "--process", process, "--listen", r.network.address(i)+":7000",
		"--seeds", strings.Join(seeds, ","), "--dir", r.dir, "--expect", fmt.Sprint(r.members), "--seed", fmt.Sprint(r.seed*1000+uint64(100*i+h.starts)))
	log, err := os.Create(filepath.Join(r.dir, process+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	h.cmd.Stdout, h.cmd.Stderr = log, log
	r.processes = append(r.processes, process)
	return h.cmd.Start()
}

// signalled returns what sends a signal to the member of a host.
func signalled(s syscall.Signal) func(r *round, i int) error {
	return func(r *round, i int) error {
		if cmd := r.hosts[i].cmd; cmd != nil {
			_ = cmd.Process.Signal(s) // it may have ended
		}
		return nil
	}
}

// kill kills the member of a host.
func (r *round) kill(i int) error {
	h := &r.hosts[i]
	if h.cmd != nil {
		_ = r.quick(i)
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		h.cmd = nil
	}
	return nil
}

func (r *round) cut(i int) error { return r.network.cut([]int{i}) }

func (r *round) part(i int) error { return r.network.part([]int{i}) }

func (r *round) heal(i int) error { return r.network.heal([]int{i}) }

// slow lets the member of a host run for a fifth of the time.
func (r *round) slow(i int) error {
	h := &r.hosts[i]
	if h.cmd == nil || h.pulse != nil {
		return nil
	}
	h.pulse, h.pulsed = make(chan struct{}), make(chan struct{})
	process, end, ended := h.cmd.Process, h.pulse, h.pulsed
	go func() {
		defer close(ended)
		for {
			_ = process.Signal(syscall.SIGSTOP)
			time.Sleep(80 * time.Millisecond)
			_ = process.Signal(syscall.SIGCONT)
			select {
			case <-time.After(20 * time.Millisecond):
			case <-end:
				return
			}
		}
	}()
	return nil
}

// quick ends slow.
func (r *round) quick(i int) error {
	if h := &r.hosts[i]; h.pulse != nil {
		close(h.pulse)
		<-h.pulsed
		h.pulse, h.pulsed = nil, nil
	}
	return nil
}

// end asks all members to end, and waits for them.
func (r *round) end() {
	for i := range r.hosts {
		_ = r.quick(i)
		if cmd := r.hosts[i].cmd; cmd != nil {
			_ = cmd.Process.Signal(syscall.SIGCONT)
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for i := range r.hosts {
		h := &r.hosts[i]
		if h.cmd == nil {
			continue
		}
		limit := time.AfterFunc(20*time.Second, func() { _ = h.cmd.Process.Kill() })
		_ = h.cmd.Wait()
		limit.Stop()
		h.cmd = nil
	}
}
