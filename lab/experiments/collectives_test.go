package experiments

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/collective/engine"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The collectives of processes under LogP, to 65,536 of them: latency and messages
// against the formulas, without failures and with as many dead as a corrected call
// is made for.

const collectivesGolden = "testdata/collectives.csv"

// refusal is when the link has told everybody who is dead from the start: after a
// round trip, as a connection is refused.
func refusal(r *collectiveRun) int { return 2 * r.hop() }

// collectiveCases are what is tabled for a size. Whatever has dead comes right
// after the same without.
func collectiveCases(size int) (cases []collectiveRun) {
	base := collectiveRun{size: size, l: 2, o: 1}
	for _, call := range []string{"barrier", "broadcast", "reduce", "allreduce", "scan"} {
		base.call = call
		cases = append(cases, base)
	}
	for _, call := range []string{"reduce", "allreduce"} {
		for _, f := range []int{1, 2, 4} {
			base.call, base.f, base.notice = call, f, refusal(&base)
			cases = append(cases, base, base.withDead(f, 1))
		}
	}
	return cases
}

// The golden file is what all sizes show: all of it in a full run, its first sizes
// always.
func TestCollectivesGolden(t *testing.T) {
	sizes := 8
	if testutil.Full.On() {
		sizes = 16
	}
	if testutil.RaceEnabled {
		sizes = 6
	}
	var b strings.Builder
	fmt.Fprintln(&b, "call,corrected_for,processes,dead,latency,latency_model,quiet,messages,messages_formula,messages_per_process")
	for n := 4; n <= sizes; n += 2 {
		if need := engineBytes(t, 1<<n) << n; need > 4<<30 {
			t.Logf("2^%d engines would take %d MB: not run", n, need>>20)
			sizes = n - 2
			break
		}
		var without collectiveOutcome
		for _, r := range collectiveCases(1 << n) {
			got, m := r.simulate(t), r.model()
			if len(r.dead) == 0 {
				without = got
			}
			checkCollective(t, &r, &got, &without)
			fmt.Fprintf(&b, "%s,%d,%d,%d,%d,%d,%d,%d,%d,%.3f\n", r.call, r.f, r.size, len(r.dead), got.latency, m.latency,
				got.quiet,
				got.messages(), m.messages, float64(got.messages())/float64(r.size))
		}
		if testutil.Full.On() {
			t.Logf("2^%d processes done, %d MB taken", n, memory()>>20)
		}
	}
	if testutil.UpdateGolden.On() && testutil.Full.On() {
		if err := os.WriteFile(collectivesGolden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(collectivesGolden)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(golden), b.String()) || sizes == 16 && len(golden) != b.Len() {
		t.Errorf("computed:\n%s\nrecorded:\n%s", b.String(), golden)
	}
}

// checkCollective holds a run against the formulas, and one with dead against the
// same without.
func checkCollective(t *testing.T, r *collectiveRun, got, without *collectiveOutcome) {
	t.Helper()
	m := r.model()
	switch {
	case len(r.dead) > 0:
		// The dead send nothing, and all others send what they would have sent
		// anyway: correction does not depend on who is dead.
		want := without.messages()
		for _, d := range r.dead {
			want -= without.sent[d]
		}
		if got.messages() != want || got.latency > without.latency+r.notice {
			t.Errorf("%+v: latency %d, %d messages; without dead %d and %d, %d of which were others'",
				*r, got.latency, got.messages(), without.latency, without.messages(), want)
		}
	case r.f > 0:
		if got.messages() != m.messages || got.latency < m.latency || r.call == "reduce" && got.latency > m.latency+r.o {
			t.Errorf("%+v: latency %d, %d messages, model %+v", *r, got.latency, got.messages(), m)
		}
	case got.messages() != m.messages || got.latency != m.latency:
		t.Errorf("%+v: latency %d, %d messages, model %+v", *r, got.latency, got.messages(), m)
	}
}

// engineBytes is about what an engine takes in a world of a size.
func engineBytes(t *testing.T, size int) int {
	t.Helper()
	const some = 8
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	engines := make([]*engine.Engine, some)
	for i := range engines {
		e, err := engine.New(engine.Config{Rank: i, Size: size, Link: logpLink{}})
		if err != nil {
			t.Fatal(err)
		}
		engines[i] = e
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	for _, e := range engines {
		e.Close()
	}
	return max(0, int(after.HeapAlloc)-int(before.HeapAlloc)) / some
}
