package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/scale"
)

// scaleCommand measures what a member costs as its group grows.
type scaleCommand struct {
	config         scale.Config
	members, kills string
	picture        string
	json           bool
}

func newBenchScale() *cobra.Command {
	var s scaleCommand
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure what a member costs as its group grows",
		Long: `Start groups of growing size, each with all its members in this process, and measure
what a member holds and spends: memory, goroutines and connections at rest, processor
time when idle, a broadcast until the last member has it, and a view change after some
members have died at once, until the last survivor's program has the view.

The members share this host's processors, so that times grow with their number. What
a member spends should not: frames, processor time and connections are per member.

Broadcasts are interleaved with those of bare, the same tree without correction, as
in bench broadcast. Messages per member are frames that it receives for a broadcast
or a view change, beyond those of an idle group; processor time of a view change is
too. No member is killed that coordinates view changes.

With --transport mem, members are connected without sockets, so that many more fit.
There, no process can join. With tcp, finally a tenth of the members join at once.
A size that needs more open files than the limit allows is left out, and the largest
that fits is named.

Each size takes about --time and some seconds. Ctrl-C prints the results so far.`,
		Example: `  pleach-lab bench scale
  pleach-lab bench scale --members 64,256,1024 --kills 1,1% --json
  pleach-lab bench scale --members 64,1024,4096 --transport mem --time 1m`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&s.members, "members", "64,256,1024", "`numbers` of members; each is measured")
	f.StringVar(&s.config.Transport, "transport", "tcp", "what connects members: tcp or mem")
	f.StringVar(&s.kills, "kills", "1,1%", "`numbers` of members that die at once, or percentages; each is measured")
	f.DurationVar(&s.config.Time, "time", 20*time.Second, "`time` for the broadcasts and view changes of a size, about")
	f.IntVar(&s.config.Size, "size", 64, "size of a message, in `bytes`")
	f.Uint64Var(&s.config.Seed, "seed", 1, "`seed` that chooses the members that die")
	f.StringVar(&s.picture, "picture", "", "also draw the costs of a member to a `file`, as SVG")
	f.BoolVar(&s.json, "json", false, "print JSON")
	cli.Complete(cmd, "transport", scale.Transports...)
	return cmd
}

func (s *scaleCommand) run(cmd *cobra.Command) (err error) {
	s.config.Members, err = parseNumbers("--members", s.members)
	if err != nil {
		return err
	}
	s.config.Kills, err = scale.ParseKills(s.kills)
	if err != nil {
		return err
	}
	if err := s.config.Check(); err != nil {
		return err
	}
	return measure(cmd, s.config.Steps(), func(ctx context.Context, bar *progress) (measured, error) {
		s.config.Progress = bar.describe
		results, err := scale.Run(ctx, s.config)
		m := measured{done: bar.stop(), of: s.config.Steps(), what: "steps"}
		if len(results) > 0 {
			m.write = func(w io.Writer) error { return s.writeAll(w, results) }
		}
		return m, err
	})
}

// writeAll writes results, and draws them if that was asked for.
func (s *scaleCommand) writeAll(w io.Writer, results []scale.Result) error {
	if err := s.write(w, results); err != nil || s.picture == "" {
		return err
	}
	return savePicture(s.picture, scale.Chart(results).SVG)
}

func (s *scaleCommand) write(w io.Writer, results []scale.Result) error {
	if s.json {
		return bench.WriteResults(w, results)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "All members in one process, over %s; per member\n\n", s.config.Transport)
	fmt.Fprintf(&b, "%8s %8s %11s %11s %7s | %24s %9s %9s | %5s %17s %9s %9s %6s\n",
		"members", "heap", "goroutines", "connections", "idle", "broadcast p50/p99 (bare)", "messages", "cpu", "kills",
		"view p50/p99", "frames", "cpu", "views")
	for _, r := range results {
		fmt.Fprintf(&b, "%8d %5.0f kB %11.1f %11.1f %6.3f%% | %24s %9.2f %6.0f µs | %5d %17s %9.1f %6.0f µs %6.1f\n",
			r.Members, r.HeapKB, r.Goroutines, r.Connections, r.IdleCPU,
			fmt.Sprintf("%.1f/%.1f ms (%.1f)", r.BroadcastP50/1e3, r.BroadcastP99/1e3, r.BareP50/1e3), r.Messages, r.CPU,
			r.Kills, fmt.Sprintf("%.0f/%.0f ms", r.ViewP50, r.ViewP99), r.ViewFrames, r.ViewCPU, r.Views)
	}
	for i, r := range results {
		if r.Joined > 0 && (i == 0 || results[i-1].Members != r.Members) {
			fmt.Fprintf(&b, "\n%s joined %d at once in %.0f ms and %s.", cli.Count(r.Joined, "member"), r.Members-r.Joined,
				r.JoinMS, cli.Count(r.JoinViews, "view"))
		}
		if missed := r.Rounds - r.Complete; missed > 0 {
			fmt.Fprintf(&b, "\n%d of %d times, no view without %d of %d members came in time.", missed, r.Rounds, r.Kills,
				r.Members)
		}
		if missed := r.Broadcasts - r.BroadcastsComplete; missed > 0 && (i == 0 || results[i-1].Members != r.Members) {
			fmt.Fprintf(&b, "\n%d of %d broadcasts to %d members were not complete in time.", missed, r.Broadcasts, r.Members)
		}
		if r.OutOfFiles > 0 && (i == 0 || results[i-1].Members != r.Members) {
			fmt.Fprintf(&b, "\n%d of %d members could not connect at times, as this process may open too few files: raise the limit by ulimit -n.", r.OutOfFiles, r.Members)
		}
		if r.Evicted > 0 {
			fmt.Fprintf(&b, "\n%d live members of %d were removed from the view.", r.Evicted, r.Members)
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}
