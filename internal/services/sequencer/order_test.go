package sequencer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// maxSteps is more than any run of these tests takes.
const maxSteps = 20_000

// Every step of a run × every member that dies or is cut off there, for 3 and 4 members, plain
// and safe: those that go on deliver the same, each message once and in its origin's order, and
// all of their own; with Safe, a member that is gone has delivered nothing else.
func TestOrderSurvivesEveryDeathAtEveryStep(t *testing.T) {
	const submits = 2
	runs := 0
	for schedule := range uint64(testutil.Seeds.Or(3)) {
		for _, members := range []int{3, 4} {
			for _, safe := range []bool{false, true} {
				whole := newGroup(schedule, members, submits, safe)
				whole.run(maxSteps)
				if wrong := whole.check(submits); wrong != "" {
					t.Fatalf("schedule %d, %d members, safe %v, no fault: %s", schedule, members, safe, wrong)
				}
				for at := range whole.steps + 1 {
					for victim := range 2 * members {
						runs++
						if wrong := runWithFault(schedule, members, submits, safe, at, victim); wrong != "" {
							t.Fatalf("schedule %d, %d members, safe %v, fault %d at step %d: %s", schedule, members, safe, victim, at, wrong)
						}
					}
				}
			}
		}
	}
	t.Logf("%d runs, 0 violations", runs)
}

// runWithFault runs a schedule with one fault before a step: the first victims are killed, the
// others cut off.
func runWithFault(schedule uint64, members, submits int, safe bool, at, victim int) string {
	g := newGroup(schedule, members, submits, safe)
	for g.steps < at && g.step() {
	}
	g.fail(g.processes[victim%members], victim >= members)
	g.run(maxSteps)
	return g.check(submits)
}

// Groups of up to 6, in which members die, are cut off and join, one after the other, at random.
func TestOrderSurvivesManyFaults(t *testing.T) {
	first, seeds := testutil.First.Or(0), testutil.Seeds.Or(600)
	if testutil.Seed.On() {
		first, seeds = testutil.Seed.Or(0), 1
	}
	for seed := first; seed < first+seeds; seed++ {
		if wrong := runAtRandom(uint64(seed)); wrong != "" {
			t.Fatalf("PLEACH_SEED=%d: %s", seed, wrong)
		}
	}
	t.Logf("%d seeds, 0 violations", seeds)
}

func runAtRandom(seed uint64) string {
	const submits = 3
	g := newGroup(seed, 2+int(seed%5), submits, seed%2 == 0)
	for range 1 + g.rng.IntN(4) {
		for range g.rng.IntN(120) {
			g.step()
		}
		switch n := g.rng.IntN(3); {
		case g.changing:
		case n == 0 && g.joins < 2:
			g.join(submits)
		case n > 0:
			failSome(g, n == 1)
		}
	}
	g.run(maxSteps)
	if len(g.inside()) == 0 {
		return ""
	}
	return g.check(submits)
}

// failSome kills some members at once, or cuts them off together, such that the others can
// decide the next view and one of them has the state.
func failSome(g *group, cut bool) {
	in := g.inside()
	lowest := in[0]
	g.rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	gone := 1 + g.rng.IntN(max(len(in)/2, 1))
	stay := in[min(gone, len(in)):]
	quorum := 2*len(stay) > len(in) || 2*len(stay) == len(in) && slices.Contains(stay, lowest)
	if quorum && slices.ContainsFunc(stay, func(p *process) bool { return !p.lacking }) {
		for _, p := range in[:gone] {
			g.fail(p, cut)
		}
	}
}

// What breaks the order is found: the test of the tests.
func TestOrderFindsPlantedMistakes(t *testing.T) {
	for name, plant := range map[string]func(*Machine){
		"members deliver what a minority has": func(m *Machine) { m.config.Safe = false },
	} {
		found := ""
		for seed := uint64(0); seed < 2000 && found == ""; seed += 2 {
			g := newGroup(seed, 3, 2, true)
			for _, p := range g.processes {
				plant(p.machine)
			}
			for range g.rng.IntN(80) {
				g.step()
			}
			g.fail(g.processes[g.rng.IntN(3)], g.rng.IntN(2) == 0)
			g.run(maxSteps)
			found = g.check(2)
		}
		if found == "" {
			t.Errorf("%s: not found", name)
		} else {
			t.Logf("%s: %s", name, fmt.Sprint(found))
		}
	}
}
