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
	"github.com/pleach-go/pleach/agent/cli"
)

// traceTopic is the topic of traced messages. Members that do not subscribe to it drop them,
// after they have passed them on.
const traceTopic = "pleach.trace"

// warmups are traced first, so that the message that counts finds open connections.
const warmups = 3

// traceCommand shows the path of one message.
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
		Short: "Show the path of one message through a running group",
		Long: `Join a group, broadcast a traced message, and leave. Each member reports when the
message arrived, from which member, and how: along the tree, by a correction message
of a ring neighbor, or by a repair that it requested. The command draws the tree that
the message took, with the time of each arrival.

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
	return t.write(cmd.OutOrStdout(), newTraceJSON(trace, group.View(), t.bytes))
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
	Arrivals []arrivalJSON `json:"arrivals"`
	Missing  []int         `json:"missing"`
}

// arrivalJSON is the arrival of a traced message at one member.
type arrivalJSON struct {
	Rank     int    `json:"rank"`
	Identity string `json:"identity"`
	From     int    `json:"from"`
	Path     string `json:"path"`
	After    int64  `json:"after_ns"`
}

// newTraceJSON adds the identities of the members to a trace.
func newTraceJSON(trace *pleach.Trace, v pleach.View, bytes int) *traceJSON {
	report := &traceJSON{
		View: trace.View, Members: v.Size(), Root: trace.Root, Bytes: bytes, Sent: trace.Sent,
		Arrivals: []arrivalJSON{}, Missing: trace.Missing,
	}
	for _, a := range trace.Arrivals {
		member, _ := v.Member(a.Rank)
		report.Arrivals = append(report.Arrivals, arrivalJSON{
			Rank: a.Rank, Identity: member.ID, From: a.From, Path: string(a.Path), After: int64(a.After),
		})
	}
	return report
}
