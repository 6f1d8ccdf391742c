package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"
)

// fault is something that a nemesis does to some hosts for a while.
type fault struct {
	name  string
	least int // hosts; 0: one
	hosts int // at most
	most  time.Duration
	rare  bool // it is of all hosts, and rare
	kinds []string
	begin func(r *round, hosts []int) error
	end   func(r *round, hosts []int) error
}

// each does something to one host after the other.
func each(do func(r *round, host int) error) func(r *round, hosts []int) error {
	return func(r *round, hosts []int) (err error) {
		for _, host := range hosts {
			err = errors.Join(err, do(r, host))
		}
		return err
	}
}

// Faults that wait for a whole group where the state is in memory: they kill.
const (
	killMinority = "kill a minority"
	severAndKill = "sever and kill"
)

// leaveAll is a planned stop: all members leave, so that the group is over, and begin again with
// their directories.
const leaveAll = "leave all"

// killAll ends a group whose state is in memory, which begins again without it.
const killAll = "kill all"

// faults returns all of them. Every one leaves the group able to recover when it has ended. Where
// the state is in memory, the death of a majority ends the group: there, kill takes a minority.
func faults() []fault {
	stop, resume, kill, start := each(signalled(syscall.SIGSTOP)), each(signalled(syscall.SIGCONT)), each((*round).kill),
		each((*round).start)
	own, kept, members, all := []string{memory}, []string{disks}, []string{disks, memory}, []string{disks, memory, agents}
	return []fault{
		{name: "kill", hosts: 3, most: 3 * time.Second, kinds: kept, begin: kill, end: start},
		{name: killMinority, hosts: 2, most: 3 * time.Second, kinds: own, begin: kill, end: start},
		{name: "sever", least: 2, hosts: 4, most: 5 * time.Second, kinds: all, begin: (*round).sever, end: (*round).join},
		{
			name: severAndKill, least: 2, hosts: 4, most: 2 * time.Second, kinds: members, begin: (*round).severAndKill,
			end: (*round).joinAndStart,
		},
		{name: "stop", hosts: 3, most: 5 * time.Second, kinds: all, begin: stop, end: resume},
		{name: "cut", hosts: 3, most: 10 * time.Second, kinds: all, begin: (*round).cut, end: (*round).heal},
		{name: "part", hosts: 3, most: 10 * time.Second, kinds: all, begin: (*round).part, end: (*round).heal},
		{name: "slow", hosts: 1, most: 5 * time.Second, kinds: all, begin: each((*round).slow), end: each((*round).quick)},
		{
			name: "clock", hosts: 3, most: 5 * time.Second, kinds: members, begin: each((*round).step),
			end: each((*round).stepBack),
		},
		{
			name: "disk full", hosts: 3, most: 4 * time.Second, kinds: kept, begin: each((*round).fill),
			end: each((*round).empty),
		},
		{name: "restart all", hosts: 5, most: time.Second, rare: true, kinds: kept, begin: kill, end: start},
		{name: killAll, hosts: 5, most: time.Second, rare: true, kinds: own, begin: kill, end: start},
		{name: leaveAll, hosts: 5, most: time.Second, rare: true, kinds: members, begin: (*round).leave, end: start},
		{name: "stop all", hosts: 5, most: 3 * time.Second, rare: true, kinds: members, begin: stop, end: resume},
		{
			name: roll, hosts: 5, most: time.Second, rare: true, kinds: []string{agents}, begin: rollWith(syscall.SIGTERM),
			end: each(nothing),
		},
		{
			name: rollByKill, hosts: 5, most: time.Second, rare: true, kinds: []string{agents}, begin: rollWith(syscall.SIGKILL),
			end: each(nothing),
		},
	}
}

func nothing(*round, int) error { return nil }

// faultsOf returns the faults of a kind of round.
func faultsOf(kind string, rare bool) []fault {
	return slices.DeleteFunc(faults(), func(f fault) bool { return f.rare != rare || !slices.Contains(f.kinds, kind) })
}

// disturb carries a plan out.
func (r *round) disturb(plan []action) error {
	for _, a := range plan {
		all := faults()
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == a.Fault })
		if i < 0 {
			return fmt.Errorf("verify: there is no fault %q", a.Fault)
		}
		time.Sleep(a.Pause)
		if r.kind == memory && (a.Fault == killMinority || a.Fault == severAndKill) && !r.whole() {
			continue
		}
		if r.kind == agents {
			r.awaitReady(r.all()...)
		}
		event := Event{Type: evFault, At: observe(), Err: a.Fault, Hosts: a.Hosts}
		if err := all[i].begin(r, a.Hosts); err != nil {
			return err
		}
		time.Sleep(a.For)
		if err := all[i].end(r, a.Hosts); err != nil {
			return err
		}
		event.Until = observe()
		r.faults = append(r.faults, event)
	}
	return nil
}

// whole waits until all members are in one view of all. It reports false if that takes long.
func (r *round) whole() bool {
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		in := 0
		for i := range r.hosts {
			if text, err := os.ReadFile(sizeFile(r.dir, memberID(i))); err == nil && string(text) == fmt.Sprint(r.members) {
				in++
			}
		}
		if in == r.members {
			return true
		}
	}
	return false
}

// sever cuts the links between the first host and the others; all still reach the rest.
func (r *round) sever(hosts []int) error { return r.links((*network).sever, hosts) }

// join ends sever.
func (r *round) join(hosts []int) error { return r.links((*network).join, hosts) }

func (r *round) links(change func(n *network, a, b int) error, hosts []int) (err error) {
	for _, other := range hosts[1:] {
		err = errors.Join(err, change(r.network, hosts[0], other))
	}
	return err
}

// severAndKill kills the first host's member when it has not reached the others for a moment: what
// it has sent last, some members have and some have not.
func (r *round) severAndKill(hosts []int) error {
	if err := r.sever(hosts); err != nil {
		return err
	}
	time.Sleep(severed)
	return r.kill(hosts[0])
}

const severed = 40 * time.Millisecond // less than it takes to be asked for what is missing

func (r *round) joinAndStart(hosts []int) error { return errors.Join(r.join(hosts), r.start(hosts[0])) }

// step sets the clock of a member forward or back, and has it run faster.
func (r *round) step(i int) error {
	rng := rand.New(rand.NewPCG(r.seed, uint64(len(r.faults)*r.members+i)))
	step := time.Duration(rng.Int64N(int64(2*time.Hour))) - time.Hour
	if rng.IntN(2) == 0 {
		step /= 1000 // seconds, as a time server corrects
	}
	return r.shift(i, shift{step, rng.Int64N(maxRate)})
}

// stepBack sets the clock right, which is a step again.
func (r *round) stepBack(i int) error { return r.shift(i, shift{}) }

func (r *round) shift(i int, s shift) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(shiftFile(r.dir, memberID(i)), text, 0o600); err != nil {
		return err
	}
	return signalled(syscall.SIGUSR1)(r, i)
}
