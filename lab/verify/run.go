package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The kinds of rounds.
const (
	disks  = "disks"  // members have data directories; broadcasts, and registers that have owners
	memory = "memory" // members have a state in memory; registers, a queue and locks in one order
	agents = "agents" // agents keep keys, and are restarted one at a time
)

// kindOf returns the kind of a seed's round: they take turns.
func kindOf(seed uint64) string { return []string{agents, disks, memory}[seed%3] }

// summary counts what was run and found.
type summary struct {
	rounds, faults, processes, views, deliveries, receipts, calls, serves, results int
	keyCalls                                                                       int // of calls: of keys of agents
	// processes whose initial state was compared
	begun     int
	changes   int // of holders of locks
	took      time.Duration
	undecided int // registers that porcupine gave up on
	vacant    []time.Duration
}

func (s summary) String() string {
	slices.Sort(s.vacant)
	at := func(percent int) time.Duration {
		if len(s.vacant) == 0 {
			return 0
		}
		return s.vacant[(len(s.vacant)-1)*percent/100].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d rounds in %v: %d faults, %d processes, %d views, %d deliveries, %d receipts, %d calls, %d of them served by owners and %d of keys of agents, %d initial states, %d results of jobs; %d registers undecided\n"+
		"%d holders of locks, %d not released: then nobody for %v p50, %v p99",
		s.rounds, s.took.Round(time.Second), s.faults, s.processes, s.views, s.deliveries, s.receipts, s.calls, s.serves,
		s.keyCalls, s.begun, s.results, s.undecided,
		s.changes, len(s.vacant), at(50), at(99))
}

// violationsError is a round that was not right.
type violationsError struct {
	seed       uint64
	dir        string
	plan       []action
	violations []violation
}

// has reports whether a rule was violated.
func (e *violationsError) has(rule string) bool {
	return slices.ContainsFunc(e.violations, func(v violation) bool { return v.rule == rule })
}

// asViolations tells violations from errors of the machine.
func asViolations(err error) (*violationsError, error) {
	var wrong *violationsError
	if errors.As(err, &wrong) {
		return wrong, nil
	}
	return nil, err
}

func (e *violationsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "verify: seed %d: %d violations in a plan of %d actions; see %s", e.seed, len(e.violations),
		len(e.plan), filepath.Join(e.dir, "timeline.html"))
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
	for seed := c.seed; (s.rounds == 0 || time.Since(began) < c.time) && err == nil; seed++ {
		if c.kind != "" && kindOf(seed) != c.kind {
			continue
		}
		err = c.runRound(seed, &s)
		s.rounds++
		if err == nil {
			fmt.Printf("seed %d, %s: right (%v)\n", seed, kindOf(seed), time.Since(began).Round(time.Second))
		}
	}
	if wrong, _ := asViolations(err); wrong != nil && c.shrinkFor > 0 {
		fmt.Println(wrong)
		err = c.shrunk(wrong)
	}
	return s, err
}

// shrunk returns what is left of a round that violates a rule when its plan is shrunk.
func (c *config) shrunk(wrong *violationsError) error {
	tries := 0
	shortest, err := shrink(wrong, time.Now().Add(c.shrinkFor), func(plan []action) error {
		tries++
		shorter := *c
		shorter.plan, shorter.dir = plan, filepath.Join(c.dir, fmt.Sprint("shrink-", tries))
		return shorter.runRound(wrong.seed, new(summary))
	})
	return errors.Join(shortest, err)
}

// runRound runs one group from its beginning to its end, and checks its histories.
func (c *config) runRound(seed uint64, s *summary) error {
	r := &round{config: *c, seed: seed, dir: filepath.Join(c.dir, fmt.Sprint("seed-", seed))}
	r.kind = kindOf(seed)
	if r.kind == agents {
		r.members = agentsOf(seed)
	}
	r.hosts = make([]host, r.members)
	r.unmountDisks()
	if err := errors.Join(os.RemoveAll(r.dir), os.MkdirAll(filepath.Join(r.dir, "store"), 0o700)); err != nil {
		return err
	}
	if r.plan == nil {
		r.plan = newPlan(rand.New(rand.NewPCG(seed, 0)), r.kind, r.members, r.round)
	}
	if err := writePlan(filepath.Join(r.dir, "plan.json"), r.plan); err != nil {
		return err
	}
	histories, job, err := r.play()
	if err != nil {
		return err
	}
	violations := slices.Concat(check(histories, r.kind, r.faults, s), checkJob(r.members, job, s), r.crashed)
	if len(violations) == 0 {
		return os.RemoveAll(r.dir)
	}
	if err := writeTimeline(filepath.Join(r.dir, "timeline.html"), seed, histories, r.faults, violations); err != nil {
		return err
	}
	return &violationsError{seed, r.dir, r.plan, violations}
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
	crashed   []violation
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
	r.network, err = newNetwork(r.members)
	if err != nil {
		return nil, nil, err
	}
	defer r.network.remove()
	if err := r.mountDisks(); err != nil {
		return nil, nil, err
	}
	defer r.unmountDisks()
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
	if r.kind == agents {
		group, err = r.playAgents()
		return group, nil, err
	}
	time.Sleep(2 * time.Second)
	if err := r.disturb(r.plan); err != nil {
		return nil, nil, err
	}
	time.Sleep(12 * time.Second) // all are members again
	_ = r.leave(nil)
	group, err = r.read()
	if err != nil {
		return nil, nil, err
	}
	if r.kind == disks {
		job, err = r.playJob()
	}
	return group, job, err
}

// memberID is the name of a host's member.
func memberID(host int) string { return fmt.Sprint("m", host) }

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
	id := memberID(i)
	process := fmt.Sprint(id, "#", h.starts)
	var seeds []string
	for j := range r.hosts {
		seeds = append(seeds, r.network.address(j)+":7000")
	}
	member := []string{
		r.program, "member", "--id", id, "--process", process, "--listen", r.network.address(i) + ":7000",
		"--seeds", strings.Join(seeds, ","), "--dir", r.dir, "--kind", r.kind, "--expect", fmt.Sprint(r.members),
		"--seed", fmt.Sprint(r.seed*1000 + uint64(100*i+h.starts)),
	}
	if r.kind == agents {
		member = append([]string{r.agent}, r.agentArgs(i, seeds)...)
	}
	h.cmd = r.network.command(i, member...)
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
		r.ended(i, h.cmd.Wait())
		h.cmd = nil
		_ = os.Remove(sizeFile(r.dir, memberID(i)))
	}
	return nil
}

// ended notes how the process of a host has ended: if not by a signal or in order, it has crashed.
func (r *round) ended(i int, err error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		r.crashed = append(r.crashed, violation{
			rule: "no process crashes", at: observe(), processes: []string{fmt.Sprint(memberID(i), "#", r.hosts[i].starts)},
			text: fmt.Sprintf("%s#%d has ended with status %d; see its log", memberID(i), r.hosts[i].starts, exit.ExitCode()),
		})
	}
}

func (r *round) cut(hosts []int) error { return r.network.cut(hosts) }

func (r *round) part(hosts []int) error { return r.network.part(hosts) }

func (r *round) heal(hosts []int) error { return r.network.heal(hosts) }

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

// leave asks all members to end, and waits for them.
func (r *round) leave([]int) error {
	for i := range r.hosts {
		_ = r.quick(i)
		_ = signalled(syscall.SIGCONT)(r, i)
		_ = signalled(syscall.SIGTERM)(r, i)
	}
	for i := range r.hosts {
		if err := r.end(i); err != nil {
			return err
		}
	}
	return nil
}

// end asks the member of a host to end, and waits for it.
func (r *round) end(i int) error {
	h := &r.hosts[i]
	if h.cmd == nil {
		return nil
	}
	if err := signalled(syscall.SIGTERM)(r, i); err != nil {
		return err
	}
	limit := time.AfterFunc(20*time.Second, func() { _ = h.cmd.Process.Kill() })
	r.ended(i, h.cmd.Wait())
	limit.Stop()
	h.cmd = nil
	_ = os.Remove(sizeFile(r.dir, memberID(i)))
	return nil
}
