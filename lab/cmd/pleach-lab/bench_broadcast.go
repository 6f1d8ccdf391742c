package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// broadcastCommand measures broadcasts.
type broadcastCommand struct {
	config        broadcast.Config
	dead, compare string
	json          bool
}

func newBenchBroadcast() *cobra.Command {
	var b broadcastCommand
	cmd := &cobra.Command{
		Use:   "broadcast",
		Short: "Measure how long a broadcast takes to reach every live member",
		Long: `Measure broadcasts over TCP on this host: the time from before the root's call until
the last live member's program has the message, one round at a time. With --rate,
messages are sent back to back, and the result is how many a second reach all members.

With --compare, other systems are measured in the same run, interleaved round by round
(at --rate, in up to five bursts), so that other load of the host falls on all alike.
Only ratios of one run mean something.

  bare   a binomial tree over persistent connections, and nothing else. Frames are as
         long as Pleach's. A member that forwards frames joins those that have arrived
         into one write. Members below a dead one get nothing.
  flat   the root writes to all

With --dead, some members are dead from the start, and no member knows: they are
spread over the ranks, and at least every other one is an inner node of the tree. Each
number of dead has groups of its own, of --members each.

A round is complete when every live member has the message within a second. Only
complete rounds have times; where there are none, times are 0. Some rounds come first
that do not count. Bytes and messages are what a live member receives per round,
correction included. The processor time is that of a round in all members together
and, without --processes, in the benchmark itself.`,
		Example: `  pleach-lab bench broadcast --compare bare,flat
  pleach-lab bench broadcast --members 64 --dead 0,1,3,6 --compare bare
  pleach-lab bench broadcast --rate --rounds 20000 --compare bare
  pleach-lab bench broadcast --processes --members 16 --size 65536 --rounds 200 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&b.config.Members, "members", 32, "number `N` of members")
	f.BoolVar(&b.config.Processes, "processes", false, "make every member a process, instead of all in this one")
	f.IntVar(&b.config.Size, "size", 64, "size of a message, in `bytes`")
	f.IntVar(&b.config.Rounds, "rounds", 1000, "number `R` of rounds")
	f.BoolVar(&b.config.Rate, "rate", false, "send back to back, and measure how many a second reach all")
	f.StringVar(&b.dead, "dead", "0", "`numbers` of dead members, as in 0,1,3; each is measured")
	f.StringVar(&b.compare, "compare", "", "`systems` to measure too: bare, flat or both, as in bare,flat")
	f.Uint64Var(&b.config.Seed, "seed", 1, "`seed` that chooses the dead members and the order of systems in a round")
	f.BoolVar(&b.json, "json", false, "print JSON")
	cli.Complete(cmd, "compare", "bare", "flat", "bare,flat")
	return cmd
}

func (b *broadcastCommand) run(cmd *cobra.Command) error {
	if err := b.parse(); err != nil {
		return err
	}
	return measure(cmd, b.config.Rounds, func(ctx context.Context, bar *progress) (measured, error) {
		b.config.Progress = bar.update
		results, err := broadcast.Run(ctx, b.config)
		m := measured{done: bar.stop(), of: b.config.Rounds, what: "rounds"}
		if len(results) > 0 && (err == nil || ctx.Err() != nil) {
			m.write = func(w io.Writer) error { return b.write(w, results) }
		}
		return m, err
	})
}

// parse completes the config from flags.
func (b *broadcastCommand) parse() error {
	b.config.Systems = []string{"pleach"}
	if b.compare != "" {
		b.config.Systems = append(b.config.Systems, strings.Split(b.compare, ",")...)
	}
	var err error
	b.config.Dead, err = parseNumbers("--dead", b.dead)
	if err != nil {
		return err
	}
	b.config.Command = workerCommand("broadcast")
	return b.config.Check()
}

func (b *broadcastCommand) write(w io.Writer, results []broadcast.Result) error {
	if b.json {
		return bench.WriteResults(w, results)
	}
	return writeBroadcastTable(w, &b.config, results)
}
