package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/fleet"
)

// fleetCommand measures zones that are joined to a fleet.
type fleetCommand struct {
	config fleet.Config
	json   bool
}

func newBenchFleet() *cobra.Command {
	var f fleetCommand
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Measure broadcasts over zones with long links, while gateways and zones fail",
		Long: `Start a fleet, all members in this process, over TCP. Each zone has a loopback address
of its own (127.0.ZONE.1, which Linux always has), and what passes between two of
them is delayed. While random members broadcast, a gateway is killed again and again
and another process started, one zone is cut off and healed, and the last zone is
killed whole and started again.

Every message that a live member has not received, has received twice or in the wrong
order is counted; a process that has joined later counts from its first message on.
Times are those until a member of another zone has a message. Broadcasts within a zone
are measured in the same run: bound is the delay and twice their median.

Messages between zones are copies of broadcasts, acknowledgments and exchanges of
positions. With --rate full every member broadcasts as fast as it can, and the same members
do so as one group afterwards: both rates are printed. Members send heartbeats every second in their zones, as so many in one
process should, and the gateways every 300 ms to each other. 512 members need about
one processor: on a host that is busy, times grow with the load, and the bound with
them. Ctrl-C ends the run.`,
		Example: `  pleach-lab bench fleet
  pleach-lab bench fleet --zones 16 --members 32 --delay 20ms --json
  pleach-lab bench fleet --zones 4 --members 8 --kill 0 --cut 0 --down 0
  pleach-lab bench fleet --zones 3 --members 3 --rate full --kill 3s --cut 10s --down 0 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.config.Zones, "zones", 16, "`number` of zones")
	fl.IntVar(&f.config.Members, "members", 32, "`number` of members of each zone")
	fl.DurationVar(&f.config.Delay, "delay", 20*time.Millisecond, "`delay` of links between zones, one way")
	fl.DurationVar(&f.config.Time, "time", 30*time.Second, "`time` of the broadcasts")
	f.config.Rate = 20
	fl.Var((*fullRate)(&f.config.Rate),
		"rate", "broadcasts per second, of all members together, or full: all of them as fast as they can")
	fl.IntVar(&f.config.Size, "size", 64, "size of a message, in `bytes`")
	fl.DurationVar(&f.config.Kill, "kill", 500*time.Millisecond, "`interval` in which a gateway is killed; 0: none is")
	fl.DurationVar(&f.config.Cut, "cut", 5*time.Second, "`time` for which a zone is cut off; 0: none is")
	fl.DurationVar(&f.config.Down, "down", 3*time.Second, "`time` for which a zone is dead; 0: none is")
	fl.Uint64Var(&f.config.Seed, "seed", 1, "`seed` that chooses origins and victims")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// fullRate is a flag: a number, or full, which is 0.
type fullRate float64

func (r *fullRate) String() string {
	if *r == 0 {
		return "full"
	}
	return strconv.FormatFloat(float64(*r), 'g', -1, 64)
}

func (r *fullRate) Set(text string) error {
	if text == "full" {
		*r = 0
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) {
		return errors.New("write a number of broadcasts per second, or full")
	}
	*r = fullRate(n)
	return nil
}

func (*fullRate) Type() string { return "rate" }

func (f *fleetCommand) run(cmd *cobra.Command) error {
	if err := f.config.Check(); err != nil {
		return err
	}
	return measure(cmd, f.config.Steps(), func(ctx context.Context, bar *progress) (measured, error) {
		f.config.Progress = bar.describe
		result, err := fleet.Run(ctx, f.config)
		m := measured{done: bar.stop(), of: f.config.Steps(), what: "steps"}
		if err == nil && ctx.Err() == nil {
			m.write = func(w io.Writer) error { return f.write(w, &result) }
			if wrong := result.Lost + result.Twice + result.OutOfOrder; wrong > 0 {
				err = fmt.Errorf("%d deliveries were wrong", wrong)
			}
		}
		return m, err
	})
}

func (f *fleetCommand) write(w io.Writer, r *fleet.Result) error {
	if f.json {
		return bench.WriteResults(w, []fleet.Result{*r})
	}
	_, err := fmt.Fprintf(w, `%d zones of %d members, %v ms between zones; %d gateways killed, %d processes started later

broadcasts      %d, %d deliveries
lost            %d
twice           %d
out of order    %d
p50, p99        %.1f ms, %.1f ms in other zones
in one zone     %.1f ms p50
bound           %.1f ms: the delay and two zones; p50 is %.2f times that
between zones   %.1f messages for each broadcast, %.1f of them copies; %.0f bytes/s
each member     %.0f broadcasts/s; in one group %.0f/s
`, r.Zones, r.Members, r.DelayMS, r.Kills, r.Restarted, r.Broadcasts, r.Deliveries, r.Lost, r.Twice, r.OutOfOrder,
		r.P50, r.P99, r.ZoneP50, r.BoundMS, r.Ratio, r.WANMessages, r.WANCopies, r.WANBytes, r.PerOrigin, r.GroupPerOrigin)
	return err
}
