package zones

import (
	"fmt"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Faults say what fails in each run. The origin lives, and its zone is not one of the
// random zones.
type Faults struct {
	// Dead is how many random processes are dead from the start, DeadLeads in how many
	// random zones the lead is, DeadZones in how many all processes are.
	Dead, DeadLeads, DeadZones int
	// Fixed are dead from the start of every run, Deaths die on the way.
	Fixed  []protocol.Rank
	Deaths []logp.Death
}

// What the numbers of zones are drawn with, beside the run's seed.
const (
	leadsSeed = 0x1ead
	zonesSeed = 0x20e5
)

// draw makes the set the processes that are dead from the start of a run.
func (s *Scenario) draw(dead *logp.DeadSet, seed uint64) error {
	dead.Draw(s.Origin, s.Dead, seed)
	home := s.Origin / s.Members
	for _, z := range logp.RandomDead(s.Zones, home, s.DeadLeads, seed^leadsSeed) {
		if err := dead.Add(z * s.Members); err != nil {
			return err
		}
	}
	for _, z := range logp.RandomDead(s.Zones, home, s.DeadZones, seed^zonesSeed) {
		for m := range s.Members {
			if err := dead.Add(z*s.Members + m); err != nil {
				return err
			}
		}
	}
	return dead.Add(s.Fixed...)
}

// deadOf is about how many are dead from the start.
func (s *Scenario) deadOf() int {
	return s.Dead + s.DeadLeads + s.DeadZones*int(s.Members) + len(s.Fixed)
}

func (s *Scenario) checkFaults() error {
	if s.Origin < 0 || s.Origin >= s.Size() {
		return fmt.Errorf("zones: the origin must be one of the ranks 0 to %d, not %d", s.Size()-1, s.Origin)
	}
	for _, r := range s.Fixed {
		if r < 0 || r >= s.Size() {
			return fmt.Errorf("zones: rank %d cannot be dead: ranks are 0 to %d", r, s.Size()-1)
		}
	}
	if most := int(s.Zones) - 1; s.DeadLeads > most || s.DeadZones > most {
		return fmt.Errorf("zones: of %d zones, %d leads and %d whole zones are to be dead: at most %d can be, as the origin's lives", s.Zones, s.DeadLeads, s.DeadZones, most)
	}
	return nil
}

// cutOff counts the live processes in zones without a live delegate, which no process of
// another zone can reach until a view gives them one.
func (s *Scenario) cutOff(dead *logp.DeadSet) (n protocol.Rank) {
	for z := range s.Zones {
		if z == s.Origin/s.Members {
			continue
		}
		first := z * s.Members
		if dead.CountIn(first, first+s.Delegates) == s.Delegates {
			n += s.Members - dead.CountIn(first, first+s.Members)
		}
	}
	return n
}
