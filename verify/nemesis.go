package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// nemesis disturbs a group: what, whom and for how long follow from the seed.
type nemesis struct {
	rng   *rand.Rand
	round *round
}

// fault is something that a nemesis does to some hosts for a while.
type fault struct {
	name  string
	hosts func(n *nemesis) []int
	begin func(r *round, host int) error
	end   func(r *round, host int) error
	most  time.Duration
}

// faults are all of them. Every one leaves the group able to go on when it has ended.
func faults() []fault {
	stop, resume := signalled(syscall.SIGSTOP), signalled(syscall.SIGCONT)
	return []fault{
		{"kill", (*nemesis).few, (*round).kill, (*round).start, 3 * time.Second},
		{"stop", (*nemesis).few, stop, resume, 5 * time.Second},
		{"cut", (*nemesis).few, (*round).cut, (*round).heal, 6 * time.Second},
		{"part", (*nemesis).few, (*round).part, (*round).heal, 6 * time.Second},
		{"slow", (*nemesis).one, (*round).slow, (*round).quick, 5 * time.Second},
		{"restart all", (*nemesis).all, (*round).kill, (*round).start, time.Second},
		{"stop all", (*nemesis).all, stop, resume, 3 * time.Second},
	}
}

// one, few and all choose hosts. Few are a minority, or now and then a majority.
func (n *nemesis) one() []int { return n.rng.Perm(n.round.members)[:1] }

func (n *nemesis) few() []int { return n.rng.Perm(n.round.members)[:1+n.rng.IntN(3)] }

func (n *nemesis) all() []int { return n.rng.Perm(n.round.members) }

// run disturbs the group until a moment.
func (n *nemesis) run(until time.Time) error {
	for all := faults(); ; {
		time.Sleep(time.Duration(n.rng.Int64N(int64(3 * time.Second))))
		if time.Now().After(until) {
			return nil
		}
		// Faults of all members are rare.
		f := all[n.rng.IntN(len(all)-2)]
		if n.rng.IntN(10) == 0 {
			f = all[len(all)-1-n.rng.IntN(2)]
		}
		hosts := f.hosts(n)
		event := Event{Type: evFault, At: time.Now().UnixNano(), Err: fmt.Sprint(f.name, " ", hosts)}
		for _, host := range hosts {
			if err := f.begin(n.round, host); err != nil {
				return err
			}
		}
		time.Sleep(200*time.Millisecond + time.Duration(n.rng.Int64N(int64(f.most))))
		for _, host := range hosts {
			if err := f.end(n.round, host); err != nil {
				return err
			}
		}
		event.Until = time.Now().UnixNano()
		n.round.faults = append(n.round.faults, event)
	}
}
