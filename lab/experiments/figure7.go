package experiments

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Figure7Row is one row of the table in Corrected Gossip's Figure 7: N = 4096,
// L = 2, O = 1.
type Figure7Row struct {
	Algorithm string
	Dead      int
	// Time is T.
	Time protocol.Time
	// Stated latency and work.
	StatedLatency, StatedWork float64

	// What the simulation shows. Latency is when the last process is through
	// with the algorithm, Work the number of messages, Correction those of
	// correction, Unreached the share of live processes that were missed.
	Latency, Work, Correction, Unreached float64
	Runs                                 int

	correction string
	ends       func(*logp.Result) protocol.Time
}

// Figure7Rows are the table as printed.
func Figure7Rows() []Figure7Row {
	// Gossip and opportunistic correction end at a fixed time, when the last
	// message has been received; the others when the last process has nothing
	// left to send.
	fixed := func(r *logp.Result) protocol.Time { return r.Quiescence }
	free := func(r *logp.Result) protocol.Time { return r.LastSend }
	return []Figure7Row{
		{Algorithm: "GOS", Dead: 0, Time: 50, StatedLatency: 53, StatedWork: 95418, correction: "none", ends: fixed},
		{Algorithm: "GOS", Dead: 3, Time: 50, StatedLatency: 53, StatedWork: 95331, correction: "none", ends: fixed},
		{
			Algorithm: "OCG", Dead: 0, Time: 32, StatedLatency: 42, StatedWork: 38400, correction: "opportunistic:2",
			ends: fixed,
		},
		{
			Algorithm: "OCG", Dead: 3, Time: 32, StatedLatency: 42, StatedWork: 38355, correction: "opportunistic:2",
			ends: fixed,
		},
		{Algorithm: "CCG", Dead: 0, Time: 36, StatedLatency: 44, StatedWork: 19057, correction: "throttled", ends: free},
		{Algorithm: "CCG", Dead: 3, Time: 34, StatedLatency: 46, StatedWork: 16952, correction: "throttled", ends: free},
		{
			Algorithm: "FCG", Dead: 0, Time: 37, StatedLatency: 48, StatedWork: 23153, correction: "failure-proof:1",
			ends: free,
		},
		{
			Algorithm: "FCG", Dead: 3, Time: 37, StatedLatency: 51, StatedWork: 23101, correction: "failure-proof:1",
			ends: free,
		},
		{Algorithm: "BIG", Dead: 0, StatedLatency: 60, StatedWork: 49152, correction: "none", ends: free},
		{Algorithm: "BIG", Dead: 3, StatedLatency: 60, StatedWork: 49152, correction: "none", ends: free},
		{Algorithm: "BFB", Dead: 0, StatedLatency: 96, StatedWork: 4096, correction: "none", ends: fixed},
		{Algorithm: "BFB", Dead: 3, StatedLatency: 144, StatedWork: 8192, correction: "none", ends: fixed},
	}
}

// Figure7 runs every row.
func Figure7(ctx context.Context, runs int, seed uint64) ([]Figure7Row, error) {
	rows := Figure7Rows()
	for i := range rows {
		if err := rows[i].run(ctx, runs, seed); err != nil {
			return nil, fmt.Errorf("%s with %d dead: %w", rows[i].Algorithm, rows[i].Dead, err)
		}
	}
	return rows, nil
}

func (row *Figure7Row) run(ctx context.Context, runs int, seed uint64) error {
	s := Scenario{
		Size: 4096, L: 2, O: 1, FreeReceive: true,
		Dissemination: "gossip", GossipTime: row.Time, Drain: -1,
		Correction: row.correction, Start: broadcast.Synchronized,
		Dead: row.Dead, Runs: runs, Seed: seed,
	}
	switch row.Algorithm {
	case "BIG":
		s.Dissemination, s.Start = "big", broadcast.Overlapped
	case "BFB":
		s.Dissemination, s.Start = "bfb", broadcast.Overlapped
		s.Dying = row.Dead / 3 // one of three dies on the way, see dieOnTheWay
		s.Dead -= s.Dying
	}
	report, err := s.Run(ctx, nil)
	if err != nil {
		return err
	}
	row.Runs = runs
	row.Latency = logp.Distribute(report.Results, func(r *logp.Result) float64 { return float64(row.ends(r)) }).Mean
	row.Work, row.Correction = report.Messages.Total, report.Messages.Correction
	row.Unreached = float64(report.Unreached.Processes) / float64(runs) / float64(s.Size)
	return nil
}
