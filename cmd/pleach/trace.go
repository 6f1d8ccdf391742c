package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/cli"
	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/internal/experiments/calibrate"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// traceTopic is the topic of traced messages. Members that do not subscribe to it drop them,
// after they have passed them on.
const traceTopic = "pleach.trace"

// warmups are traced first, so that the message that counts finds open connections.
const warmups = 3

// traceCommand shows the way of one message.
type traceCommand struct {
	groupFlags
	listen  string
	bytes   int
	timeout time.Duration
	json    bool
}

func newTrace() *cobra.Command {
	var t traceCommand
	cmd := &cobra.Command{
		Use:   "trace [SEED...]",
		Short: "Show the way of one message through a running group, beside the simulator's prediction",
		Long: `Join a group, broadcast a traced message, and leave. Each member reports when the
message has arrived, from which member, and how: along the tree, by a correction
message of a ring neighbor, or by a repair that it has requested. The command draws the
tree that the message has really taken, with the time of each arrival (●), beside what
the LogP simulator predicts for a tree without faults (○) from L and o, which it
measures between two processes of this host.

The message has the topic ` + traceTopic + `, so that programs do not receive it. Times are
differences of clocks: between hosts they are as exact as their clocks.`,
		Example: `  pleach trace 10.0.0.5:7000 --group orders
  pleach trace 127.0.0.1:7000 --bytes 4096
  pleach trace 127.0.0.1:7000 --json | jq '.arrivals[] | select(.path != "tree")'`,
		Args: func(_ *cobra.Command, args []string) error {
			return errors.Join(mapped(args, checkAddress)...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			seeds, err := t.addresses(cmd.Context(), args)
			if err != nil {
				return err
			}
			return t.run(cmd, seeds)
		},
	}
	t.addFlags(cmd)
	cmd.Flags().StringVar(&t.listen, "listen", "", "listen at this `address`, where members reach this process")
	cmd.Flags().IntVar(&t.bytes, "bytes", 64, "the length of the message")
	cmd.Flags().DurationVar(&t.timeout, "timeout", 10*time.Second, "how long to wait for the reports")
	cmd.Flags().BoolVar(&t.json, "json", false, "write one JSON object")
	return cmd
}

// newEcho is the second process, with which trace measures L and o.
func newEcho() *cobra.Command {
	return &cobra.Command{
		Use:    "echo",
		Short:  "Answer messages, started by trace",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Failure(calibrate.ServeEcho(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()))
		},
	}
}

// mapped applies a function to each text.
func mapped[T any](texts []string, f func(string) T) (results []T) {
	for _, text := range texts {
		results = append(results, f(text))
	}
	return results
}

func (t *traceCommand) run(cmd *cobra.Command, seeds []string) error {
	if t.bytes < 0 || t.bytes > 1<<20 {
		return fmt.Errorf("--bytes %d: choose 0 to %d", t.bytes, 1<<20)
	}
	c, err := t.config()
	if err != nil {
		return err
	}
	c.Listen = t.listen
	network, err := calibrate.MeasureHere(cmd.Context(), []string{"pleach", "echo"})
	if err != nil {
		return cli.Failure(err)
	}
	timed, cancel := context.WithTimeout(cmd.Context(), joinTimeout)
	group, err := pleach.Join(timed, c, seeds...)
	cancel()
	if err != nil {
		return noAnswer(err, c.Group)
	}
	defer group.Close()
	trace, err := t.trace(cmd.Context(), group)
	if trace == nil {
		return cli.Failure(err)
	}
	report, err := newTraceJSON(trace, group.View(), t.bytes, &network)
	if err != nil {
		return cli.Failure(err)
	}
	return t.write(cmd.OutOrStdout(), report)
}

// trace traces a message when connections are open. Members that do not report in time are
// missing in it.
func (t *traceCommand) trace(ctx context.Context, group *pleach.Group) (trace *pleach.Trace, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	for range warmups + 1 {
		next, failed := group.BroadcastTraced(ctx, traceTopic, make([]byte, t.bytes))
		if next != nil {
			trace = next
		}
		if err = failed; err != nil {
			break
		}
	}
	return trace, err
}

func (t *traceCommand) write(w io.Writer, report *traceJSON) (err error) {
	if t.json {
		err = json.NewEncoder(w).Encode(report)
	} else {
		_, err = io.WriteString(w, report.text())
	}
	return cli.Failure(err)
}

// traceJSON is a trace as --json writes it.
type traceJSON struct {
	View     uint64        `json:"view"`
	Members  int           `json:"members"`
	Root     int           `json:"root"`
	Bytes    int           `json:"bytes"`
	Sent     time.Time     `json:"sent"`
	Latency  int64         `json:"latency_ns"`  // L, as measured here
	Overhead int64         `json:"overhead_ns"` // o
	Arrivals []arrivalJSON `json:"arrivals"`
	Missing  []int         `json:"missing"`
}

// arrivalJSON is an arrival, and what the simulator predicts for it.
type arrivalJSON struct {
	Rank          int    `json:"rank"`
	Identity      string `json:"identity"`
	From          int    `json:"from"`
	Path          string `json:"path"`
	After         int64  `json:"after_ns"`
	PredictedFrom int    `json:"predicted_from"`
	Predicted     int64  `json:"predicted_ns"`
}

// newTraceJSON puts a trace and the prediction together.
func newTraceJSON(trace *pleach.Trace, v pleach.View, bytes int, n *calibrate.Network) (*traceJSON, error) {
	report := &traceJSON{
		View: trace.View, Members: v.Size(), Root: trace.Root, Bytes: bytes, Sent: trace.Sent,
		Latency: int64(n.Latency), Overhead: int64(n.Overhead.Median), Arrivals: []arrivalJSON{}, Missing: trace.Missing,
	}
	predicted, err := predict(v, trace.Root, n)
	if err != nil {
		return nil, err
	}
	for _, a := range trace.Arrivals {
		member, _ := v.Member(a.Rank)
		p := predicted[a.Rank]
		report.Arrivals = append(report.Arrivals, arrivalJSON{
			Rank: a.Rank, Identity: member.ID, From: a.From, Path: string(a.Path), After: int64(a.After),
			PredictedFrom: p.From, Predicted: int64(p.After),
		})
	}
	return report, nil
}

// predict simulates the broadcast without faults, and returns the arrivals by rank. Holes
// of the view count as if they were not there.
func predict(v pleach.View, root int, n *calibrate.Network) (map[int]pleach.Arrival, error) {
	members := v.Members()
	l, o, step := n.Steps()
	s := experiments.Scenario{
		Size: protocol.Rank(len(members)), L: l, O: o, Runs: 1,
		Dissemination: "tree", Shape: topology.Binomial(), Order: topology.Interleaved, Correction: "none",
	}
	for i, m := range members {
		if m.Rank == root {
			s.Root = protocol.Rank(i)
		}
	}
	arrivals := make(map[int]pleach.Arrival)
	_, err := s.Trace(0, func(e logp.Event) {
		if e.What == logp.Colored && e.Peer != protocol.NoRank {
			arrivals[members[e.Rank].Rank] = pleach.Arrival{From: members[e.Peer].Rank, After: time.Duration(e.Time) * step}
		}
	})
	return arrivals, err
}
