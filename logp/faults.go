package logp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/protocol"
)

// Faults say which processes fail in a run, and when.
type Faults struct {
	// Dead are dead from the start.
	Dead []protocol.Rank
	// Deaths happen on the way.
	Deaths []Death
}

// Death is one process dying in mid-operation. The first of its conditions that
// comes true is what kills it; a condition left zero never does.
type Death struct {
	Rank protocol.Rank
	// At is when it dies, before anything else at that instant.
	At protocol.Time
	// Phase is a phase it dies in: at the moment it would start its first send of it.
	Phase *protocol.Phase
	// AfterSends is the number of sends it lives through.
	AfterSends int
	// Torn lets a send in progress at the time of death go out all the same.
	Torn bool
}

// check refuses faults that name no process of the group.
func (f *Faults) check(size protocol.Rank) error {
	for _, r := range f.Dead {
		if r < 0 || r >= size {
			return fmt.Errorf("logp: rank %d cannot be dead: ranks are 0 to %d", r, size-1)
		}
	}
	for _, d := range f.Deaths {
		if d.Rank < 0 || d.Rank >= size {
			return fmt.Errorf("logp: rank %d cannot die: ranks are 0 to %d", d.Rank, size-1)
		}
		if d.At == 0 && d.Phase == nil && d.AfterSends == 0 {
			return fmt.Errorf("logp: the death of rank %d has no time, phase or number of sends", d.Rank)
		}
	}
	return nil
}

// ParseDeath reads a death as a small language has it:
//
//	5@12          rank 5 dies at time 12
//	5@correction  … at the moment it would start its first correction send
//	5#3           … after its third send
//
// A trailing ! lets a send in progress go out all the same.
func ParseDeath(text string) (Death, error) {
	wrong := func(what string) (Death, error) {
		return Death{}, fmt.Errorf(
			"logp: %s in %q: write RANK@TIME, RANK@PHASE or RANK#SENDS, as in 5@12, 5@correction or 5#3", what, text)
	}
	var d Death
	rest, torn := strings.CutSuffix(text, "!")
	d.Torn = torn
	at := strings.IndexAny(rest, "@#")
	if at < 0 {
		return wrong("no @ or #")
	}
	rank, err := strconv.ParseInt(rest[:at], 10, 32)
	if err != nil || rank < 0 {
		return wrong("no rank")
	}
	d.Rank = protocol.Rank(rank)
	value := rest[at+1:]
	for phase := range protocol.Phase(protocol.Phases) {
		if rest[at] == '@' && value == phase.String() {
			d.Phase = &phase
			return d, nil
		}
	}
	number, err := strconv.ParseInt(value, 10, 32)
	if err != nil || number < 1 {
		return wrong("no time from 1 on, phase or number of sends")
	}
	if rest[at] == '@' {
		d.At = protocol.Time(number)
	} else {
		d.AfterSends = int(number)
	}
	return d, nil
}
