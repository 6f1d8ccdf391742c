package broadcast_test

import (
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// witness watches a run and says what must never happen.
type witness struct {
	colored map[protocol.Rank]protocol.Time
	dead    map[protocol.Rank]bool
	wrong   string
}

func (w *witness) watch(e logp.Event) {
	_, colored := w.colored[e.Rank]
	since, byColored := w.colored[e.Peer]
	switch {
	case e.What == logp.Died:
		w.dead[e.Rank] = true
	case e.What == logp.Sent && w.dead[e.Rank]:
		w.wrong = "a dead process sends"
	case e.What == logp.Sent && !colored:
		w.wrong = "an uncolored process sends"
	case e.What == logp.Sent && e.Rank == e.Peer:
		w.wrong = "a process sends to itself"
	case e.What == logp.Received && w.dead[e.Rank]:
		w.wrong = "a dead process receives"
	case e.What == logp.Colored && colored:
		w.wrong = "a process is colored twice"
	case e.What == logp.Colored && !(byColored && since < e.Time):
		w.wrong = "a process is colored by one that was not"
	case e.What == logp.Colored:
		w.colored[e.Rank] = e.Time
	}
}

// Corrected Trees §2.1: "Integrity every broadcast received was previously
// sent, No duplicates a process receives a broadcast message at most once"; and
// "After a failure occurs, the failed process will neither send nor process any
// messages."
func TestIntegrityAndNoDuplicates(t *testing.T) {
	runs := pick(6, 30, 300)
	for _, lo := range [][2]protocol.Time{{2, 1}, {1, 2}} {
		for name, s := range everything(24, lo[0], lo[1]) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				trial := newTrial(t, s)
				for run := range runs {
					faults := logp.Faults{Dead: logp.RandomDead(s.Size, s.Root, run%12, uint64(run))}
					if run%2 == 1 {
						dying := protocol.Rank(run) % s.Size
						faults.Deaths = []logp.Death{{Rank: dying, At: protocol.Time(run/2 + 1), Torn: run%4 == 1}}
					}
					w := witness{colored: map[protocol.Rank]protocol.Time{s.Root: -1}, dead: map[protocol.Rank]bool{}}
					trial.seed, trial.sim.Trace = uint64(run), w.watch
					trial.run(faults)
					if w.wrong != "" {
						trial.failf(faults, "%s", w.wrong)
					}
				}
			})
		}
	}
}
