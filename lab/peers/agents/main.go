// Command agents compares pleach agent with serf agent, as an operator would run them:
// every member is a process of its own, and a client talks to each of them by its local
// interface.
//
// Both programs are built from this module, serf at the version that go.mod names.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/peers/internal/program"
)

const usage = `Compare pleach agent with serf agent: all members are processes of this host and
talk over loopback. All systems run at the same time and are interleaved round by round,
so that other load of the host falls on all alike.

  pleach      pleach agent, all defaults
  serf        serf agent, all defaults (-profile lan)
  serf-local  serf agent -profile local, its fastest one

event    from before a client gives an event to one agent until the subscribers of all
         agents, or of half of them, have it; complete are the events that reach all
         agents within 2 s, and only they have times
dead     from before a member is killed (SIGKILL) until the list of members of one agent,
         and of all agents asked one after the other, says so
memory   resident memory of an agent (RSS) in MB: of all on average, the most of one, and
         what of it is its own (RssAnon): the rest is the program, which agents share
idle     processor time of an agent without clients, of one core

Usage: go run ./agents [flags]

`

// command is what was asked for.
type command struct {
	members, events, kills int
	idle                   time.Duration
	systems                []string
	json                   bool
}

func main() {
	log.SetOutput(io.Discard) // serf's client tells there when its agent is gone
	program.Main("agents", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	c, err := parse(args, errOut)
	if err != nil {
		return err
	}
	results, err := measure(ctx, c)
	if err != nil {
		return err
	}
	return write(out, results, c.json)
}

func parse(args []string, errOut io.Writer) (*command, error) {
	var c command
	f := program.NewFlags("agents", usage, errOut)
	chosen := f.String("systems", strings.Join(names(), ","), "`systems` to measure")
	f.IntVar(&c.members, "members", 50, "number `N` of agents of each system")
	f.IntVar(&c.events, "events", 20, "number `E` of events of each system")
	f.IntVar(&c.kills, "kills", 3, "number `K` of kills of each system")
	f.DurationVar(&c.idle, "idle", 20*time.Second, "`time` for which idle agents are watched")
	f.BoolVar(&c.json, "json", false, "print JSON")
	if err := program.Parse(f, args); err != nil {
		return nil, err
	}
	switch {
	case c.members < 3 || c.members > 500:
		return nil, fmt.Errorf("--members %d: choose 3 to 500", c.members)
	case c.events < 1 || c.events > 10_000:
		return nil, fmt.Errorf("--events %d: choose 1 to 10000", c.events)
	case c.kills < 1 || 2*c.kills >= c.members:
		return nil, fmt.Errorf("--kills %d: choose at least 1 and fewer than half of the members", c.kills)
	case c.idle <= 0:
		return nil, fmt.Errorf("--idle %v: choose a time", c.idle)
	}
	var err error
	c.systems, err = program.Choose(*chosen, names())
	return &c, err
}

func write(w io.Writer, results []result, asJSON bool) error {
	if asJSON {
		return bench.WriteResults(w, results)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d agents of each system, %d events, %d kills; ms, MB, %% of a core; (×) of the first line\n\n",
		results[0].Members, results[0].Events, results[0].Kills)
	fmt.Fprintf(&b, "%-11s %9s %18s %18s %18s %18s %16s %9s %9s %16s\n", "system", "complete", "event to half p50",
		"event to all p50", "dead for one p50", "dead for all p50", "memory", "max", "own", "idle")
	for _, r := range results {
		fmt.Fprintf(&b, "%-11s %9d", r.System, r.Complete)
		for _, v := range []struct{ value, ratio float64 }{
			{r.HalfP50, r.Ratios.HalfP50},
			{r.AllP50, r.Ratios.AllP50},
			{r.OneListP50, r.Ratios.OneListP50},
			{r.AllListsP50, r.Ratios.AllListsP50},
		} {
			fmt.Fprintf(&b, " %18s", fmt.Sprintf("%.1f (%.1f×)", v.value, v.ratio))
		}
		fmt.Fprintf(&b, " %16s %9.1f %9.1f %16s\n", fmt.Sprintf("%.1f (%.2f×)", r.RSS, r.Ratios.RSS), r.RSSMax, r.RSSAnon,
			fmt.Sprintf("%.3f (%.2f×)", r.IdleCPU, r.Ratios.IdleCPU))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
