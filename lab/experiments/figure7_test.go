package experiments

import (
	"context"
	"math"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// figure7Differs lists, one by one, where the simulation of Corrected Gossip's
// Figure 7 does not come out as printed, and what it shows instead.
// docs/adr/0004 has the reasons.
var figure7Differs = map[[2]any]struct {
	what          string
	latency, work float64
	within        float64 // of the work shown instead
}{
	// The printed work leaves no room for the gossip that the printed T, and the
	// rows GOS and OCG, imply; and less than the printed latency's own sends.
	{"CCG", 0}: {"work", 0, 58556, 0.01},
	{"CCG", 3}: {"latency and work", 44, 50380, 0.01}, // T = 36, as without failures, gives the printed 46
	{"FCG", 0}: {"work", 0, 74933, 0.01},
	{"FCG", 3}: {"work", 0, 74893, 0.01},
	// Modeled, not simulated, in the paper: acknowledgments are not counted, and
	// a failure is taken to cost one and a half times all.
	{"BFB", 0}: {"work", 0, 8190, 0},
	{"BFB", 3}: {"latency and work", 105, 9570, 0.2},
}

// Corrected Gossip §IV-D: the table in Figure 7, latency within one step, work
// within two percent.
func TestFigure7(t *testing.T) {
	runs := 30
	if testutil.Full.On() {
		runs = 10_000
	}
	if testutil.RaceEnabled {
		runs = 4
	}
	rows, err := Figure7(context.Background(), runs, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		latency, work := row.near()
		t.Logf("%s %d dead, T = %2d: latency %.2f (printed %.0f), work %.0f (printed %.0f), of that correction %.0f",
			row.Algorithm, row.Dead, row.Time, row.Latency, row.StatedLatency, row.Work, row.StatedWork, row.Correction)
		differs, known := figure7Differs[[2]any{row.Algorithm, row.Dead}]
		if known && differs.latency != 0 {
			latency = math.Abs(row.Latency-differs.latency) <= 0.1*differs.latency && !latency
		}
		if known {
			work = math.Abs(row.Work-differs.work) <= differs.within*differs.work && !work
		}
		if !latency || !work {
			t.Errorf("%s with %d dead: latency %.2f, work %.0f; printed %.0f, %.0f; known to differ in %q",
				row.Algorithm, row.Dead, row.Latency, row.Work, row.StatedLatency, row.StatedWork, differs.what)
		}
		if row.Unreached > 1e-4 {
			t.Errorf("%s with %d dead: %.3g of the processes were missed", row.Algorithm, row.Dead, row.Unreached)
		}
	}
}

// near reports whether the simulation is as near to the print as asked for: one
// step of latency, two percent of work.
func (row *Figure7Row) near() (latency, work bool) {
	return math.Abs(row.Latency-row.StatedLatency) <= 1, math.Abs(row.Work-row.StatedWork) <= 0.02*row.StatedWork
}
