package main

import (
	"encoding/json"
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
	hosts int // at most
	most  time.Duration
	rare  bool   // it is of all hosts, and rare
	kind  string // of rounds; empty: of all
	begin func(r *round, host int) error
	end   func(r *round, host int) error
}

// faults returns all of them. Every one leaves the group able to go on when it has ended. Where
// the state is in memory, the death of a majority ends the group: there, kill takes a minority.
func faults() []fault {
	stop, resume := signalled(syscall.SIGSTOP), signalled(syscall.SIGCONT)
	return []fault{
		{name: "kill", hosts: 3, most: 3 * time.Second, kind: folders, begin: (*round).kill, end: (*round).start},
		{name: "kill a minority", hosts: 2, most: 3 * time.Second, kind: memory, begin: (*round).kill, end: (*round).start},
		{name: "stop", hosts: 3, most: 5 * time.Second, begin: stop, end: resume},
		{name: "cut", hosts: 3, most: 8 * time.Second, begin: (*round).cut, end: (*round).heal},
		{name: "part", hosts: 3, most: 8 * time.Second, begin: (*round).part, end: (*round).heal},
		{name: "slow", hosts: 1, most: 5 * time.Second, begin: (*round).slow, end: (*round).quick},
		{name: "clock", hosts: 3, most: 5 * time.Second, begin: (*round).step, end: (*round).stepBack},
		{name: "disk full", hosts: 3, most: 4 * time.Second, kind: folders, begin: (*round).fill, end: (*round).empty},
		{name: "restart all", hosts: 5, most: time.Second, rare: true, kind: folders, begin: (*round).kill, end: (*round).start},
		{name: "stop all", hosts: 5, most: 3 * time.Second, rare: true, begin: stop, end: resume},
	}
}

// faultsOf returns the faults of a kind of round.
func faultsOf(kind string, rare bool) []fault {
	return slices.DeleteFunc(faults(), func(f fault) bool { return f.rare != rare || f.kind != "" && f.kind != kind })
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
		if a.Fault == "kill a minority" && !r.whole() {
			continue
		}
		event := Event{Type: evFault, At: observe(), Err: a.Fault, Hosts: a.Hosts}
		for _, host := range a.Hosts {
			if err := all[i].begin(r, host); err != nil {
				return err
			}
		}
		time.Sleep(a.For)
		for _, host := range a.Hosts {
			if err := all[i].end(r, host); err != nil {
				return err
			}
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
