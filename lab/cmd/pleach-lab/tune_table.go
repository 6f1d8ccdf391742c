package main

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/lab/experiments/tune"
)

// tuneTable is the answer for people.
func tuneTable(q *tune.Question, a *tune.Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "P=%d, L=%d, o=%d, %d dead, reliability %g, seed %d\n\n", q.Size, q.L, q.O, q.Dead,
		q.Reliability, q.Seed)
	fmt.Fprintf(&b, "%-34s %8s %8s %8s %9s %10s  %s\n", "", "latency", "p99", "bound", "messages", "P(miss)", "missed")
	for i := range a.Options {
		o := &a.Options[i]
		fmt.Fprintf(&b, "%-34s ", o.Name())
		if o.Runs == 0 {
			fmt.Fprintf(&b, "%8s %8s %8d %9s %10.2g  not simulated", "-", "-", o.Bound, "-", o.Miss)
		} else {
			fmt.Fprintf(&b, "%8.2f %8.0f %8d %9.2f %10.2g  %d of %d runs", o.Latency, o.P99, o.Bound, o.Messages, o.Miss,
				o.Missed, o.Runs)
		}
		if !o.Meets {
			b.WriteString(", not reliable enough")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	if a.Fastest < 0 {
		b.WriteString("Nothing is as reliable as wanted.\n")
		return b.String()
	}
	for _, choice := range []struct {
		what  string
		index int
	}{{"fastest", a.Fastest}, {"fewest messages", a.Leanest}} {
		o := &a.Options[choice.index]
		fmt.Fprintf(&b, "%-16s %s: pleach-lab sim -P %d -L %d -o %d --faults %d %s\n", choice.what, o.Name(), q.Size, q.L,
			q.O, q.Dead, tuneFlags(o))
	}
	return b.String()
}

// tuneFlags are the flags of pleach-lab sim that run an option.
func tuneFlags(o *tune.Option) string {
	if o.Broadcast == "gossip" {
		return fmt.Sprintf("--dissemination gossip --gossip-time %d --correction %s", o.GossipTime, o.Correction)
	}
	return fmt.Sprintf("--shape %s --correction %s", o.Broadcast, o.Correction)
}
