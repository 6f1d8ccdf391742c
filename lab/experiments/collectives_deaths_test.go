package experiments

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// A process that dies during a corrected call, at any moment, costs no other
// process's input: every live process gets a sum that includes all live ones, and
// none sends more than the formula says. No view is needed.
func TestCorrectedCollectivesSurviveDeathsUnderLogP(t *testing.T) {
	runs := 300
	if testutil.RaceEnabled {
		runs = 30
	}
	if testutil.Full.On() {
		runs = 20_000
	}
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := collectiveRun{
			call: []string{"reduce", "allreduce"}[rng.IntN(2)], size: 2 + rng.IntN(190), l: 1 + rng.IntN(3), o: 1 + rng.IntN(2),
			f: 1 + rng.IntN(4), death: rng.IntN(90), notice: rng.IntN(40),
		}
		r.victims = r.withDead(min(r.f, r.size-1), seed).dead
		if got, m := r.simulate(t), r.model(); got.messages() > m.messages {
			t.Errorf("seed %d, %+v: %d messages, at most %d expected", seed, r, got.messages(), m.messages)
		}
	}
}

// Survivors take over the task of a process that dies during a run-through call,
// when the view without it comes. What that took is logged: go test -v -run RunThrough.
func TestCollectivesRunThroughDeathsUnderLogP(t *testing.T) {
	sizes := []int{16, 64, 256}
	if testutil.Full.On() {
		sizes = append(sizes, 1024)
	}
	if testutil.RaceEnabled {
		sizes = sizes[:2]
	}
	for _, size := range sizes {
		for _, call := range []string{"barrier", "broadcast", "reduce", "allreduce", "scan"} {
			r := collectiveRun{call: call, size: size, l: 2, o: 1}
			without := r.simulate(t)
			for _, k := range []int{1, 4} {
				r.victims, r.notice = r.withDead(k, 1).dead, stabilizationTime(t, size, k)
				r.death = without.latency / 2
				r.checkRunThrough(t, &without)
			}
		}
	}
}

// stabilizationTime is how long the change of view takes, by our own model.
func stabilizationTime(t *testing.T, size, dead int) int {
	t.Helper()
	s := Stabilization{Size: protocol.Rank(size), L: 2, O: 1, Dead: dead, Watchers: 2}
	ts, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	return int(ts)
}

// checkRunThrough makes the call, whose victims are stood in for. Others send a new owner
// the messages to its task again, and the task is done again. No more than that is redone,
// so neither messages nor time grow with the number of processes but by the task's steps.
func (r collectiveRun) checkRunThrough(t *testing.T, without *collectiveOutcome) {
	t.Helper()
	got := r.simulate(t)
	extra, after := got.messages()-without.messages(), max(0, got.latency-r.death-r.notice)
	t.Logf("%-9s P %4d, %d die at %2d, view at %3d: %4d steps (%2d without), %3d after the view; %5d messages more than %5d",
		r.call, r.size, len(r.victims), r.death, r.death+r.notice, got.latency, without.latency, after, extra,
		without.messages())
	messages := 2 * bits.Len(uint(r.size)) // that a task sends or gets, at most
	most := len(r.victims) * messages
	longest := without.latency + len(r.victims)*r.o*messages
	if extra > most || after > longest {
		t.Errorf("%+v: %d messages more than without, at most %d expected; %d steps after the view, at most %d", r, extra,
			most, after, longest)
	}
}
