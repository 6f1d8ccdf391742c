package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// result is what was measured of a system. Times are in ms.
type result struct {
	System  string `json:"system"`
	Members int    `json:"members"`
	Events  int    `json:"events"`
	Kills   int    `json:"kills"`
	figures
	// Complete counts the events that have reached all members in time. Only they have times.
	Complete int     `json:"events_complete"`
	AllP99   float64 `json:"event_all_p99_ms"`
	AllMax   float64 `json:"event_all_max_ms"`
	// ListMax is the longest time until all lists were true.
	ListMax float64 `json:"dead_all_max_ms"`
	RSSMax  float64 `json:"rss_max_mb"`
	RSSAnon float64 `json:"rss_anon_mb"`
	// Ratios are the figures divided by those of the first system.
	Ratios figures `json:"ratios"`
}

// figures are those that systems are compared by.
type figures struct {
	HalfP50     float64 `json:"event_half_p50_ms"`
	AllP50      float64 `json:"event_all_p50_ms"`
	OneListP50  float64 `json:"dead_one_p50_ms"`
	AllListsP50 float64 `json:"dead_all_p50_ms"`
	RSS         float64 `json:"rss_mb"`
	IdleCPU     float64 `json:"idle_cpu_percent"`
}

// settle is the time that agents have after the start, before they count as idle.
const settle = 5 * time.Second

// trial is a system under measurement.
type trial struct {
	*fleet
	result
	arrived            chan arrival
	half, all          []time.Duration // of events
	oneList, everyList []time.Duration // of deaths
}

// arrival is an event that a subscriber has got.
type arrival struct {
	text string
	at   time.Time
}

func measure(ctx context.Context, c *command) (results []result, err error) {
	dir, err := os.MkdirTemp("", "agents-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin := filepath.Join(dir, "bin")
	if err := build(ctx, bin); err != nil {
		return nil, err
	}
	var trials []*trial
	defer func() {
		for _, t := range trials {
			err = errors.Join(err, t.close())
		}
	}()
	for _, name := range c.systems {
		f, err := startFleet(ctx, name, bin, dir, c.members)
		if err != nil {
			return nil, err
		}
		t := &trial{fleet: f, arrived: make(chan arrival, 2*c.members)}
		t.result = result{System: name, Members: c.members, Events: c.events, Kills: c.kills}
		trials = append(trials, t)
	}
	if err := watchIdle(ctx, trials, c.idle); err != nil {
		return nil, err
	}
	if err := sendEvents(ctx, trials, c.events); err != nil {
		return nil, err
	}
	for i := range c.kills {
		for _, t := range trials {
			if err := t.kill(ctx, (i+1)*c.members/(c.kills+1)); err != nil {
				return nil, fmt.Errorf("%s: %w", t.system, err)
			}
		}
	}
	for _, t := range trials {
		results = append(results, t.summary())
	}
	for i := range results {
		results[i].Ratios = results[i].over(&results[0].figures)
	}
	return results, nil
}

// build builds the programs. The commands are tools of this module, so go.mod has their
// versions.
func build(ctx context.Context, bin string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", bin+string(filepath.Separator),
		"github.com/hashicorp/serf/cmd/serf", "github.com/pleach-go/pleach/agent/cmd/pleach")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as both are released
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// watchIdle measures memory and processor time of agents that have no clients.
func watchIdle(ctx context.Context, trials []*trial, d time.Duration) error {
	if err := rest(ctx, settle); err != nil {
		return err
	}
	before := make([]time.Duration, len(trials))
	for i, t := range trials {
		used, err := t.footprint()
		if err != nil {
			return err
		}
		before[i] = used.processor
	}
	began := time.Now()
	if err := rest(ctx, d); err != nil {
		return err
	}
	for i, t := range trials {
		used, err := t.footprint()
		if err != nil {
			return err
		}
		n := float64(len(t.processes))
		t.IdleCPU = bench.Round(100*(used.processor-before[i]).Seconds()/time.Since(began).Seconds()/n, 4)
		t.RSS, t.RSSAnon, t.RSSMax = bench.Round(used.rss/n, 1), bench.Round(used.anon/n, 1), bench.Round(used.rssMax, 1)
	}
	return nil
}

// sendEvents subscribes to all agents, and then sends events by the first of each system.
func sendEvents(ctx context.Context, trials []*trial, n int) error {
	for _, t := range trials {
		for _, a := range t.agents {
			if err := a.subscribe(ctx, func(text string) { t.arrived <- arrival{text, time.Now()} }); err != nil {
				return err
			}
		}
	}
	for i := range n {
		for _, t := range trials {
			if err := t.event(ctx, fmt.Sprintf("event %d", i)); err != nil {
				return fmt.Errorf("%s: %w", t.system, err)
			}
		}
	}
	return nil
}

// eventLimit is how long an event may take to reach all members. One that gossip has not
// brought to a member waits for the next exchange of all state, many seconds later.
const eventLimit = 2 * time.Second

// event sends an event, and waits until every subscriber has it, or it is too late.
func (t *trial) event(ctx context.Context, text string) error {
	began, late := time.Now(), time.After(eventLimit)
	var sending sync.WaitGroup
	defer sending.Wait()
	failed := make(chan error, 1)
	sending.Go(func() {
		if err := t.agents[0].send(ctx, text); err != nil {
			failed <- err
		}
	})
	var took []time.Duration
	for len(took) < len(t.agents) {
		select {
		case a := <-t.arrived:
			if a.text == text { // not an earlier one that is late
				took = append(took, a.at.Sub(began))
			}
		case err := <-failed:
			return err
		case <-late:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	slices.Sort(took)
	t.Complete++
	t.half, t.all = append(t.half, took[(len(took)-1)/2]), append(t.all, took[len(took)-1])
	return nil
}

// askAgain is the pause between two looks at a list.
const askAgain = 2 * time.Millisecond

// kill kills an agent, and watches the lists of the others: that of the first one until it is
// true, then the next. Asking all of them at once would keep them from their work.
func (t *trial) kill(ctx context.Context, victim int) error {
	if err := t.agents[victim].close(); err != nil {
		return err
	}
	t.agents[victim] = nil
	began := time.Now()
	if err := t.processes[victim].Process.Kill(); err != nil {
		return err
	}
	for i, a := range t.agents {
		if a == nil {
			continue
		}
		err := await(ctx, askAgain, func() error {
			alive, err := a.alive(ctx)
			if err == nil && slices.Contains(alive, nameOf(victim)) {
				err = fmt.Errorf("%s is still alive for %s", nameOf(victim), nameOf(i))
			}
			return err
		})
		if err != nil {
			return err
		}
		if i == 0 {
			t.oneList = append(t.oneList, time.Since(began))
		}
	}
	t.everyList = append(t.everyList, time.Since(began))
	_ = t.processes[victim].Wait() // it was killed
	return nil
}

func (t *trial) summary() result {
	p := func(times []time.Duration, percent int) float64 {
		return bench.Millis(bench.Percentile(slices.Sorted(slices.Values(times)), percent))
	}
	r := t.result
	r.HalfP50, r.AllP50, r.AllP99, r.AllMax = p(t.half, 50), p(t.all, 50), p(t.all, 99), p(t.all, 100)
	r.OneListP50, r.AllListsP50, r.ListMax = p(t.oneList, 50), p(t.everyList, 50), p(t.everyList, 100)
	return r
}

// over divides figures by those of another system.
func (f *figures) over(by *figures) figures {
	ratio := func(x, y float64) float64 {
		if y == 0 {
			return 0
		}
		return bench.Round(x/y, 2)
	}
	return figures{
		ratio(f.HalfP50, by.HalfP50), ratio(f.AllP50, by.AllP50), ratio(f.OneListP50, by.OneListP50),
		ratio(f.AllListsP50, by.AllListsP50), ratio(f.RSS, by.RSS), ratio(f.IdleCPU, by.IdleCPU),
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
