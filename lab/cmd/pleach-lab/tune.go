package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/experiments/tune"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// tuneCommand chooses a broadcast.
type tuneCommand struct {
	size, l, o  int64
	faults      string
	reliability float64
	runs        int
	seed        uint64
	json        bool
	out         string
	with        string // the address to calibrate with; "": none
	hosts       int    // of the job whose collectives are predicted
}

func newTune() *cobra.Command {
	var t tuneCommand
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Choose tree, correction and gossip time for a group and a reliability",
		Long: `Choose how to broadcast to P processes of which some may be dead: for every tree, and
for gossip, which correction reaches every live process with the wanted probability,
what it costs, and which one is the fastest and which sends least.

The distance of a correction follows from the longest gap to expect, and the time of
gossip from the least total, by the formulas of Corrected Gossip (Eqs. 1 to 5). Bounds
of the latency hold with the wanted reliability. Checked and failure-proof corrections
reach every live process: their probability to miss one is 0.

Then every option is simulated in the LogP model with as many random dead. An option
that misses more often than wanted gets a larger distance: the formulas take gaps to be
independent, which a dead process near a tree's root contradicts. Few runs cannot show
a small probability: after R runs without a miss it is most likely below 3/R. Bounds of
gossip are those of that paper, in whose model receives do not wait for each other; in
the simulation they do, and gossip can take longer. Gossip is simulated up to 262,144
processes.

--calibrate measures L and o instead of taking them from -L and -o: with a second
process on this host or, with an address, with pleach-lab tune echo on another one. Half of
a round trip over Pleach's TCP transport is 2o + L. Each of many messages sent back to
back takes o, the time that the slower side is busy with it. Both are medians. On one
host that is mostly system calls and wake-ups, and waiting for busy cores: mind the
spread.

It also measures what messages cost collective calls: two processes of a job on this host
answer each other by broadcasts, through shared memory and, without an address, over TCP.
The bandwidth is what long messages take beyond short ones. Then it prints which algorithm
each call of a job of P processes on --hosts hosts chooses, by the LogGP model, and the
setting that gives a program these figures.`,
		Example: `  pleach-lab tune -P 65536 --faults 1%
  pleach-lab tune -P 1000 -L 20 -o 3 --faults 5 --reliability 0.999999
  pleach-lab tune -P 4096 --faults 0.1% --out tradeoff.svg --json
  pleach-lab tune -P 500 --calibrate
  pleach-lab tune -P 500 --calibrate=10.0.0.7:7000 --hosts 20`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	f := cmd.Flags()
	f.Int64VarP(&t.size, "processes", "P", 1024, "number `P` of processes")
	f.Int64VarP(&t.l, "latency", "L", 2, "latency `L` of the network, in steps")
	f.Int64VarP(&t.o, "overhead", "o", 1, "overhead `o` of a send and of a receive, in steps")
	f.StringVar(&t.faults, "faults", "1%", "how many processes may be dead, a `number` or a share as in 1%")
	f.Float64Var(&t.reliability, "reliability", 0.9999, "wanted `probability` to reach every live process")
	f.IntVar(&t.runs, "runs", 0, "`number` of runs of each option (default: what a few seconds allow)")
	f.Uint64Var(&t.seed, "seed", 1, "`seed` of all randomness")
	f.BoolVar(&t.json, "json", false, "write one JSON object")
	f.StringVar(&t.out, "out", "", "draw the trade-off into this `file`, .svg or .png")
	f.StringVar(&t.with, "calibrate", "",
		"measure L and o, with a process on this host or with pleach-lab tune echo at an `address`")
	f.Lookup("calibrate").NoOptDefVal = loopback
	f.IntVar(&t.hosts, "hosts", 1, "with --calibrate, `number` of hosts of the job whose collectives are predicted")
	cmd.MarkFlagsMutuallyExclusive("calibrate", "latency")
	cmd.MarkFlagsMutuallyExclusive("calibrate", "overhead")
	cmd.AddCommand(newTuneEcho())
	return cmd
}

// question makes a question of the flags.
func (t *tuneCommand) question() (q tune.Question, err error) {
	y := layout{size: t.size, l: t.l, o: t.o}
	q.Size, _, q.L, q.O, err = y.network()
	if err != nil {
		return q, err
	}
	q.Dead, err = parseFaults(t.faults, q.Size)
	if err != nil {
		return q, err
	}
	switch {
	case t.size < 3:
		return q, fmt.Errorf("-P %d: choose a number of processes between 3 and %d", t.size, logp.MaxSize)
	case q.Dead > int(q.Size)-2:
		return q, fmt.Errorf("--faults %s: of %d processes at most %d can be dead, as the root and one to hear it live",
			t.faults, t.size, t.size-2)
	case !(t.reliability > 0 && t.reliability < 1):
		return q, fmt.Errorf("--reliability %g: choose a probability above 0 and below 1, as in 0.9999", t.reliability)
	case t.hosts < 1 || int64(t.hosts) > t.size:
		return q, fmt.Errorf("--hosts %d: choose a number between 1 and %d, which is -P", t.hosts, t.size)
	case t.hosts != 1 && t.with == "":
		return q, errors.New("--hosts is for --calibrate")
	case t.runs < 0 || t.runs > maxRuns:
		return q, fmt.Errorf("--runs %d: choose a number between 1 and %d", t.runs, maxRuns)
	}
	if kind := filepath.Ext(t.out); t.out != "" && kind != ".svg" && kind != ".png" {
		return q, fmt.Errorf("--out %s: choose a name that ends in .svg or .png", t.out)
	}
	q.Reliability, q.Runs, q.Seed = t.reliability, t.runs, t.seed
	return q, nil
}

func (t *tuneCommand) run(cmd *cobra.Command) error {
	// Whatever else is wrong shows before anything is measured.
	if _, err := t.question(); err != nil {
		return err
	}
	measured, err := t.calibrate(cmd.Context())
	if err != nil {
		return err
	}
	q, err := t.question()
	if err != nil {
		return err
	}
	bar := newShareProgress(cmd.ErrOrStderr())
	answer, err := tune.Tune(cmd.Context(), q, bar.update)
	bar.stop()
	switch {
	case cmd.Context().Err() != nil:
		return cli.Interruption("interrupted before all options were simulated") // half an answer is none
	case err != nil:
		return cli.Failure(errors.New(strings.TrimPrefix(err.Error(), "tune: ")))
	}
	if t.out != "" {
		if err := t.draw(answer, &q); err != nil {
			return err
		}
	}
	if t.json {
		err = t.writeJSON(cmd, &q, answer, measured)
	} else {
		if measured != nil {
			fmt.Fprint(cmd.OutOrStdout(), measured)
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), tuneTable(&q, answer))
	}
	return cli.Failure(err)
}

func (t *tuneCommand) draw(a *tune.Answer, q *tune.Question) error {
	c := a.Chart(fmt.Sprintf("P = %d, L = %d, o = %d, %d dead, reliability %g", q.Size, q.L, q.O, q.Dead, q.Reliability))
	if filepath.Ext(t.out) == ".png" {
		return savePicture(t.out, c.PNG)
	}
	return savePicture(t.out, c.SVG)
}

func (t *tuneCommand) writeJSON(cmd *cobra.Command, q *tune.Question, a *tune.Answer, measured *calibration) error {
	return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
		Processes   protocol.Rank `json:"processes"`
		L           protocol.Time `json:"L"`
		O           protocol.Time `json:"o"`
		Dead        int           `json:"dead"`
		Reliability float64       `json:"reliability"`
		Seed        uint64        `json:"seed"`
		*tune.Answer
		Calibration *calibrationJSON `json:"calibration,omitempty"`
	}{q.Size, q.L, q.O, q.Dead, q.Reliability, q.Seed, a, measured.json()})
}
