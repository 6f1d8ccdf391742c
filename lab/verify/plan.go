package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// A plan is what a nemesis does in a round. It follows from the seed, and is written next to the
// histories, so that it can be run again, whole or without some of its actions.

// action is a fault of some hosts for a while.
type action struct {
	Fault string        `json:"fault"`
	Hosts []int         `json:"hosts"`
	Pause time.Duration `json:"pause"` // before it
	For   time.Duration `json:"for"`
}

// newPlan returns the plan of a seed.
func newPlan(rng *rand.Rand, kind string, members int, limit time.Duration) (plan []action) {
	common, rare := faultsOf(kind, false), faultsOf(kind, true)
	for past := time.Duration(0); ; {
		a := action{Pause: time.Duration(rng.Int64N(int64(2 * time.Second)))}
		f := common[rng.IntN(len(common))]
		if rng.IntN(5) == 0 {
			f = rare[rng.IntN(len(rare))]
		}
		a.Fault, a.Hosts = f.name, rng.Perm(members)
		if i := slices.Index(a.Hosts, 0); !f.rare && rng.IntN(3) == 0 { // it often leads
			a.Hosts[0], a.Hosts[i] = 0, a.Hosts[0]
		}
		if !f.rare {
			least := max(f.least, 1)
			a.Hosts = a.Hosts[:least+rng.IntN(min(f.hosts, members)-least+1)]
		}
		a.For = 200*time.Millisecond + time.Duration(rng.Int64N(int64(f.most)))
		if rng.IntN(2) == 0 { // so that there are many faults in a round, and long ones
			a.For /= 4
		}
		past += a.Pause + a.For
		if past > limit {
			return plan
		}
		plan = append(plan, a)
	}
}

func readPlan(path string) (plan []action, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	return plan, err
}

func writePlan(path string, plan []action) error {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// shrinkTries is how often a shorter plan is run before it counts as right: processes are not as
// repeatable as a simulation.
const shrinkTries = 2

// shrink leaves out one action after the other of a plan that violates a rule, as long as what is
// left also violates it. It returns the violations of the shortest plan.
func shrink(failed *violationsError, until time.Time, run func(plan []action) error) (*violationsError, error) {
	for i, rule := 0, failed.violations[0].rule; i < len(failed.plan) && time.Now().Before(until); {
		shorter := slices.Delete(slices.Clone(failed.plan), i, i+1)
		var found *violationsError
		for try := 0; try < shrinkTries && found == nil; try++ {
			wrong, err := asViolations(run(shorter))
			if err != nil {
				return failed, err
			}
			if wrong != nil && wrong.has(rule) {
				found = wrong
			}
		}
		if found == nil {
			i++
			continue
		}
		failed = found
		fmt.Printf("shrinking: %d actions are left\n", len(failed.plan))
	}
	return failed, nil
}
