package logp_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// scripted is a machine that sends what it is told to, when it is told to, and
// writes down what it hears.
type scripted struct {
	sends []scriptedSend
	heard []string
}

type scriptedSend struct {
	at     protocol.Time // not before
	to     protocol.Rank
	queued bool // decided at time 0
	phase  protocol.Phase
}

func (m *scripted) Receive(now protocol.Time, msg *protocol.Message[int]) {
	m.heard = append(m.heard, fmt.Sprintf("%d from %d", now, msg.From))
}

func (m *scripted) Next(now protocol.Time, a *protocol.Action[int]) {
	if len(m.sends) == 0 {
		a.Wait()
		return
	}
	s := m.sends[0]
	switch {
	case now < s.at:
		a.WaitUntil(s.at)
		return
	case s.queued:
		a.SendQueued(0, s.phase, s.to, 0)
	default:
		a.Send(s.phase, s.to, 0)
	}
	m.sends = m.sends[1:]
}

func (m *scripted) Complete() bool { return len(m.heard) > 0 }

func (m *scripted) Report(now protocol.Time, failed protocol.Rank) {
	m.heard = append(m.heard, fmt.Sprintf("%d dead %d", now, failed))
}

// The model's rules, one by one: what each process hears, and when.
func TestModel(t *testing.T) {
	correction := protocol.Correction
	none := protocol.Time(0)
	tests := []struct {
		name       string
		params     logp.Params
		sends      map[int][]scriptedSend
		faults     logp.Faults
		heard      map[int][]string
		quiescence protocol.Time
	}{
		{
			name:       "one hop takes 2o+L",
			params:     logp.Params{L: 5, O: 3},
			sends:      map[int][]scriptedSend{0: {{to: 1}}},
			heard:      map[int][]string{1: {"11 from 0"}},
			quiescence: 11,
		},
		{
			name:       "a send keeps the port busy for o",
			params:     logp.Params{L: 2, O: 3},
			sends:      map[int][]scriptedSend{0: {{to: 1}, {to: 2}}},
			heard:      map[int][]string{1: {"8 from 0"}, 2: {"11 from 0"}},
			quiescence: 11,
		},
		{
			name:       "send and receive overlap freely",
			params:     logp.Params{L: 0, O: 2},
			sends:      map[int][]scriptedSend{0: {{to: 1}}, 1: {{to: 0}, {to: 2}}},
			heard:      map[int][]string{0: {"4 from 1"}, 1: {"4 from 0"}, 2: {"6 from 1"}},
			quiescence: 6,
		},
		{
			name:       "arrivals at a busy port wait, the lower rank goes first",
			params:     logp.Params{L: 2, O: 3},
			sends:      map[int][]scriptedSend{1: {{to: 0}}, 2: {{to: 0}}, 3: {{to: 0}}},
			heard:      map[int][]string{0: {"8 from 1", "11 from 2", "14 from 3"}},
			quiescence: 14,
		},
		{
			name:   "decided first goes first, not arrived first",
			params: logp.Params{L: 2, O: 3},
			// 2's message waits since 7, 3's arrives at 8 but was decided at 0.
			sends:      map[int][]scriptedSend{1: {{to: 0}}, 2: {{at: 2, to: 0}}, 3: {{at: 3, to: 0, queued: true}}},
			heard:      map[int][]string{0: {"8 from 1", "11 from 3", "14 from 2"}},
			quiescence: 14,
		},
		{
			name:       "decided first goes first among those that arrive together",
			params:     logp.Params{L: 2, O: 1},
			sends:      map[int][]scriptedSend{1: {{at: 1, to: 0}}, 2: {{at: 1, to: 0, queued: true}}},
			heard:      map[int][]string{0: {"5 from 2", "6 from 1"}},
			quiescence: 6,
		},
		{
			name:       "with free receives nobody waits",
			params:     logp.Params{L: 2, O: 3, FreeReceive: true},
			sends:      map[int][]scriptedSend{1: {{to: 0}}, 2: {{to: 0}}},
			heard:      map[int][]string{0: {"8 from 1", "8 from 2"}},
			quiescence: 8,
		},
		{
			name:       "a message to the dead counts as activity until it arrives",
			params:     logp.Params{L: 2, O: 3},
			sends:      map[int][]scriptedSend{0: {{to: 1}, {to: 2}}},
			faults:     logp.Faults{Dead: []protocol.Rank{2}},
			heard:      map[int][]string{1: {"8 from 0"}},
			quiescence: 8,
		},
		{
			name:       "who dies at t neither receives nor sends at t",
			params:     logp.Params{L: 2, O: 1},
			sends:      map[int][]scriptedSend{0: {{to: 1}}, 1: {{at: 4, to: 2}}},
			faults:     logp.Faults{Deaths: []logp.Death{{Rank: 1, At: 4}}},
			heard:      map[int][]string{},
			quiescence: 4,
		},
		{
			name:       "a send that death interrupts is torn",
			params:     logp.Params{L: 2, O: 3},
			sends:      map[int][]scriptedSend{0: {{to: 1}}},
			faults:     logp.Faults{Deaths: []logp.Death{{Rank: 0, At: 2}}},
			heard:      map[int][]string{},
			quiescence: 0,
		},
		{
			name:       "or goes out all the same",
			params:     logp.Params{L: 2, O: 3},
			sends:      map[int][]scriptedSend{0: {{to: 1}}},
			faults:     logp.Faults{Deaths: []logp.Death{{Rank: 0, At: 2, Torn: true}}},
			heard:      map[int][]string{1: {"8 from 0"}},
			quiescence: 8,
		},
		{
			name:       "dying after a number of sends",
			params:     logp.Params{L: 2, O: 1},
			sends:      map[int][]scriptedSend{0: {{to: 1}, {to: 2}, {to: 3}}},
			faults:     logp.Faults{Deaths: []logp.Death{{Rank: 0, AfterSends: 2}}},
			heard:      map[int][]string{1: {"4 from 0"}, 2: {"5 from 0"}},
			quiescence: 5,
		},
		{
			name:       "dying as a phase starts",
			params:     logp.Params{L: 2, O: 1},
			sends:      map[int][]scriptedSend{0: {{to: 1}, {to: 2, phase: correction}}},
			faults:     logp.Faults{Deaths: []logp.Death{{Rank: 0, Phase: &correction}}},
			heard:      map[int][]string{1: {"4 from 0"}},
			quiescence: 4,
		},
		{
			name:       "a detector reports deaths",
			params:     logp.Params{L: 2, O: 1, Detector: &none},
			sends:      map[int][]scriptedSend{0: {{to: 1}}},
			faults:     logp.Faults{Dead: []protocol.Rank{2}, Deaths: []logp.Death{{Rank: 3, At: 7}}},
			heard:      map[int][]string{0: {"0 dead 2", "7 dead 3"}, 1: {"0 dead 2", "4 from 0", "7 dead 3"}, 3: {"0 dead 2"}},
			quiescence: 4,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			machines := make([]protocol.Machine[int], 4)
			for r := range machines {
				machines[r] = &scripted{sends: tt.sends[r]}
			}
			sim, err := logp.NewSimulator[int](tt.params)
			if err != nil {
				t.Fatal(err)
			}
			result, err := sim.Run(machines, tt.faults)
			if err != nil {
				t.Fatal(err)
			}
			for r, m := range machines {
				if heard := m.(*scripted).heard; !slices.Equal(heard, tt.heard[r]) {
					t.Errorf("rank %d heard %q, not %q", r, heard, tt.heard[r])
				}
			}
			if result.Quiescence != tt.quiescence {
				t.Errorf("quiescence at %d, not %d", result.Quiescence, tt.quiescence)
			}
		})
	}
}

func TestEndlessOperationIsEnded(t *testing.T) {
	sim, err := logp.NewSimulator[int](logp.Params{L: 2, O: 1})
	if err != nil {
		t.Fatal(err)
	}
	sim.Initiators = []protocol.Rank{0}
	machines := []protocol.Machine[int]{&scripted{sends: []scriptedSend{{at: 1 << 40, to: 1}}}, &scripted{}}
	if _, err := sim.Run(machines, logp.Faults{}); !errors.Is(err, logp.ErrEndless) {
		t.Errorf("error %v", err)
	}
}

func TestRefusesWhatMakesNoSense(t *testing.T) {
	for _, params := range []logp.Params{{L: 1}, {L: -1, O: 1}, {L: 1 << 40, O: 1}} {
		if _, err := logp.NewSimulator[int](params); err == nil {
			t.Errorf("%+v is taken", params)
		}
	}
	sim, err := logp.NewSimulator[int](logp.Params{L: 1, O: 1})
	if err != nil {
		t.Fatal(err)
	}
	machines := []protocol.Machine[int]{&scripted{}}
	for _, faults := range []logp.Faults{
		{Dead: []protocol.Rank{1}},
		{Deaths: []logp.Death{{Rank: -1, At: 3}}},
		{Deaths: []logp.Death{{Rank: 0}}},
	} {
		if _, err := sim.Run(machines, faults); err == nil {
			t.Errorf("%+v is taken", faults)
		}
	}
	if _, err := sim.Run(nil, logp.Faults{}); err == nil {
		t.Error("no machines are taken")
	}
}

// The same seed gives the same results on any number of cores.
func TestResultsDoNotDependOnCores(t *testing.T) {
	run := func(cores int) []logp.Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		results, err := logp.Repeat(context.Background(), 40, func() (func(int) (logp.Result, error), error) {
			plan, err := broadcast.NewPlan(broadcast.Config{
				Size: 300, Dissemination: broadcast.Gossip{Until: 18, Hop: 4},
				Correction: broadcast.Checked{}, Start: broadcast.Synchronized, At: 21,
			})
			if err != nil {
				return nil, err
			}
			sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: 2, O: 1})
			group := plan.Group()
			return func(run int) (logp.Result, error) {
				return sim.Run(group.Machines(uint64(run)), logp.Faults{Dead: logp.RandomDead(300, 0, 20, uint64(run))})
			}, err
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	if one, many := run(1), run(8); !reflect.DeepEqual(one, many) {
		t.Error("one core and eight show different results")
	}
}

func TestRepeatStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	_, err := logp.Repeat(ctx, 1000, func() (func(int) (int, error), error) {
		return func(run int) (int, error) {
			if run == 10 {
				cancel()
			}
			return run, nil
		}, nil
	}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: error %v", err)
	}
	broken := errors.New("broken")
	_, err = logp.Repeat(context.Background(), 1000, func() (func(int) (int, error), error) {
		return func(run int) (int, error) {
			if run == 10 {
				return 0, broken
			}
			return run, nil
		}, nil
	}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("broken: error %v", err)
	}
}

// A trace is one JSON object a line; sends, receives and losses add up.
func TestTraceAddsUp(t *testing.T) {
	b := newCheckedBroadcast(t, topology.KAry(2), 50, 2, 1)
	var lines strings.Builder
	var writeErr error
	count := map[logp.What]int64{}
	write := logp.WriteTrace(&lines, &writeErr)
	b.sim.Trace = func(e logp.Event) {
		count[e.What]++
		write(e)
	}
	r := b.run(t, []protocol.Rank{3, 4})
	if writeErr != nil {
		t.Fatal(writeErr)
	}
	if count[logp.Sent] != r.Total() || count[logp.Sent] != count[logp.Received]+count[logp.Lost] {
		t.Errorf("%v, result %+v", count, r)
	}
	if count[logp.Colored] != 47 || count[logp.Died] != 2 {
		t.Errorf("%v: 47 of 50 are colored by messages, 2 are dead", count)
	}
	if first, _, _ := strings.Cut(lines.String(), "\n"); first != `{"t":0,"event":"die","rank":3,"peer":-1}` {
		t.Errorf("first line %s", first)
	}
}
