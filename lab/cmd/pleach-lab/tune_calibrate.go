package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/experiments/calibrate"
)

// loopback is the value of --calibrate without one: a second process on this
// host.
const loopback = "loopback"

// calibration is what pleach-lab tune --calibrate has measured.
type calibration struct {
	calibrate.Network
	where string
	step  time.Duration
	calls collectiveCalibration
}

// calibrate measures L and o, if that is wanted, and sets them in steps.
func (t *tuneCommand) calibrate(ctx context.Context) (c *calibration, err error) {
	if t.with == "" {
		return nil, nil
	}
	c = &calibration{where: t.with}
	c.calls.tasks, c.calls.hosts = int(t.size), t.hosts
	if t.with == loopback {
		c.where = "a process on this host"
		c.Network, err = calibrate.MeasureHere(ctx, workerCommand("echo"))
	} else {
		c.Network, err = calibrate.Measure(ctx, t.with)
	}
	c.calls.between = c.Network
	if err == nil && t.with == loopback {
		c.calls.between, err = calibrate.MeasureJob(ctx, workerCommand("calibrate", "apart"))
	}
	if err == nil {
		c.calls.inside, err = calibrate.MeasureJob(ctx, workerCommand("calibrate", "shared"))
	}
	if err != nil {
		return nil, cli.Failure(errors.New(strings.TrimPrefix(err.Error(), "calibrate: ")))
	}
	l, o, step := c.Steps()
	t.l, t.o, c.step = int64(l), int64(o), step
	return c, nil
}

// String is what was measured, for people.
func (c *calibration) String() string {
	l, o, _ := c.Steps()
	return fmt.Sprintf("measured with %s: 2o + L = %s, o = %s, so L = %v: %d and %d steps of %v\n%v", c.where,
		spreadText(c.Hop), spreadText(c.Overhead), cli.Micro(c.Latency), l, o, cli.Micro(c.step), &c.calls)
}

func spreadText(s calibrate.Spread) string {
	return fmt.Sprintf("%v (10%% to 90%%: %v to %v)", cli.Micro(s.Median), cli.Micro(s.P10), cli.Micro(s.P90))
}

// calibrationJSON is the same for programs, in nanoseconds.
type calibrationJSON struct {
	Hop      [3]int64 `json:"hop_ns"`      // median, 10% and 90%
	Overhead [3]int64 `json:"overhead_ns"` // median, 10% and 90%
	Latency  int64    `json:"latency_ns"`
	Step     int64    `json:"step_ns"`

	Collectives collectiveCalibrationJSON `json:"collectives"`
}

func (c *calibration) json() *calibrationJSON {
	if c == nil {
		return nil
	}
	three := func(s calibrate.Spread) [3]int64 {
		return [3]int64{s.Median.Nanoseconds(), s.P10.Nanoseconds(), s.P90.Nanoseconds()}
	}
	return &calibrationJSON{three(c.Hop), three(c.Overhead), c.Latency.Nanoseconds(), c.step.Nanoseconds(), c.calls.json()}
}

// newTuneEcho is the other end of a calibration.
func newTuneEcho() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "echo",
		Short: "Answer pleach-lab tune --calibrate, from another host",
		Long: `Answer pleach-lab tune --calibrate HOST:PORT on another host, which measures the network
to this one, until Ctrl-C. The first line is the address that it listens at. Any
process that reaches the address gets answers, and nothing else.`,
		Example: `  pleach-lab tune echo --listen :7000`,
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return cli.Failure(err)
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), l.Addr()); err != nil {
				return cli.Failure(err)
			}
			return cli.Failure(calibrate.Echo(cmd.Context(), l))
		},
	}
	cmd.Flags().StringVar(&address, "listen", ":7000", "`address` to listen at")
	return cmd
}
