package tune

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Question is what is known and wanted.
type Question struct {
	// Size is P; Dead is how many of them may be dead.
	Size protocol.Rank
	Dead int
	L, O protocol.Time
	// Reliability is the least probability to reach every live process.
	Reliability float64
	// Runs is how often each option is simulated; 0 is as often as a few seconds
	// allow.
	Runs int
	Seed uint64
}

// Option is one way to broadcast.
type Option struct {
	// Broadcast is the tree's shape, or gossip.
	Broadcast string `json:"broadcast"`
	// Correction is as flags spell it, with its distance.
	Correction string `json:"correction"`
	// GossipTime is T; 0 for trees.
	GossipTime protocol.Time `json:"gossip_time,omitempty"`

	// What the formulas say: a bound on the latency that holds with the wanted
	// reliability, and the probability to miss anyone.
	Bound protocol.Time `json:"latency_bound"`
	Miss  float64       `json:"miss"`

	// What the simulation shows: quiescence latency, messages per process, and
	// how many of the runs missed anyone. Without runs there is nothing.
	Latency  float64 `json:"latency"`
	P99      float64 `json:"latency_p99"`
	Messages float64 `json:"messages_per_process"`
	Missed   int     `json:"missed_runs"`
	Runs     int     `json:"runs"`

	// Meets says whether it is as reliable as wanted, by both.
	Meets bool `json:"meets"`

	scenario experiments.Scenario
	colored  float64 // how many dissemination colors, on average
}

// Answer are the options, and the best of those that are reliable enough:
// indices, or -1 if there is none.
type Answer struct {
	Options []Option `json:"options"`
	Fastest int      `json:"fastest"`
	Leanest int      `json:"leanest"`
}

// Limits of what is simulated.
const (
	// gossipLimit is how many processes gossip is simulated on: every message is
	// an event of its own.
	gossipLimit = 1 << 18
	// farthest is how far a correction that only tries may be made to reach; what
	// needs more is checked correction's.
	farthest = 64
)

// Check says what is wrong with the question.
func (q *Question) Check() error {
	switch {
	case q.Size < 3 || q.Size > logp.MaxSize:
		return fmt.Errorf("tune: %d processes: choose between 3 and %d", q.Size, logp.MaxSize)
	case q.L < 0 || q.O < 1:
		return fmt.Errorf("tune: L = %d, o = %d: L must not be negative, o at least 1", q.L, q.O)
	case q.Dead < 0 || protocol.Rank(q.Dead) > q.Size-2:
		return fmt.Errorf("tune: %d of %d processes dead: the root and one to hear it must live", q.Dead, q.Size)
	case !(q.Reliability > 0 && q.Reliability < 1):
		return fmt.Errorf("tune: reliability %g: choose more than 0 and less than 1", q.Reliability)
	}
	return nil
}

// Tune answers. progress, if not nil, is called with the option that is simulated and
// the share of all that is done, from any goroutine.
func Tune(ctx context.Context, q Question, progress func(what string, share float64)) (*Answer, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	options, err := q.options()
	if err != nil {
		return nil, err
	}
	for i := range options {
		err := options[i].simulate(ctx, &q, func(share float64) {
			if progress != nil {
				progress(options[i].Name(), (float64(i)+share)/float64(len(options)))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	a := &Answer{Options: options, Fastest: -1, Leanest: -1}
	for i, o := range options {
		if !o.Meets || o.Runs == 0 {
			continue
		}
		if a.Fastest < 0 || o.Latency < options[a.Fastest].Latency {
			a.Fastest = i
		}
		if a.Leanest < 0 || o.Messages < options[a.Leanest].Messages {
			a.Leanest = i
		}
	}
	return a, nil
}

// Name is how people call the option.
func (o *Option) Name() string {
	if o.Broadcast == "gossip" {
		return fmt.Sprintf("gossip until %d, %s", o.GossipTime, o.Correction)
	}
	return o.Broadcast + ", " + o.Correction
}

// simulate runs the option. A correction that turns out to miss more often than
// wanted is made to reach one further, and is run again: the formulas take gaps
// for independent, which a dead process near the root makes them not.
func (o *Option) simulate(ctx context.Context, q *Question, progress func(share float64)) error {
	s := &o.scenario
	s.Size, s.L, s.O, s.Dead, s.Seed = q.Size, q.L, q.O, q.Dead, q.Seed
	s.Start, s.Correction = broadcast.Synchronized, o.Correction
	s.Runs = q.runs(s)
	if s.Runs == 0 {
		o.Meets = o.Miss <= 1-q.Reliability
		return nil
	}
	for {
		report, err := s.Run(ctx, func(done int) { progress(float64(done) / float64(s.Runs)) })
		if err != nil {
			return err
		}
		o.Latency, o.P99 = report.Quiescence.Mean, report.Quiescence.P99
		o.Messages, o.Missed, o.Runs = report.MessagesPerProcess.Mean, report.Unreached.Runs, report.Runs
		o.Meets = o.Miss <= 1-q.Reliability && float64(o.Missed) <= (1-q.Reliability)*float64(o.Runs)
		if o.Meets || !o.further(q) {
			return nil
		}
	}
}

// runs is how often a scenario is simulated.
func (q *Question) runs(s *experiments.Scenario) int {
	switch {
	case s.Dissemination == "gossip" && q.Size > gossipLimit:
		return 0
	case q.Runs > 0:
		return q.Runs
	case s.Dissemination == "gossip":
		return min(max((1<<20)/int(q.Size), 10), 1000)
	default:
		return min(max(2_000_000/(q.Dead+50), 10), 20_000)
	}
}
