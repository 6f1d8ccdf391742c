package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/order"
)

// orderCommand measures one order of messages.
type orderCommand struct {
	config order.Config
	versus string
	json   bool
}

func newBenchOrder() *cobra.Command {
	o := orderCommand{config: order.Config{Systems: []string{order.Broadcast, order.Order, order.Safe}}}
	cmd := &cobra.Command{
		Use:   "order",
		Short: "Measure messages in one order, and the broadcast that carries them",
		Long: `Start groups, all members in this process, over TCP on the loopback interface: one that
only broadcasts, one with an order of all messages (package ordered), and one whose order
delivers only what a majority has (safe).

Times are from before the call of a member that does not lead until the last member has the
message, of one message after the other. Rates are those of the slowest member while all
members send as fast as they can.

With --compare etcd, as many servers of etcd are started as processes, with their logs in the
temporary directory. A message is a put by etcd's JSON gateway: its time is until the put returns,
when a majority has it on disk, and its rate that of 32 clients of each server. etcd keeps what
it is given, and Pleach does not: a put costs etcd the writes to a disk.`,
		Example: `  pleach-lab bench order
  pleach-lab bench order --members 3,5 --size 64,8192 --compare etcd --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.config.Members, "members", []int{3, 5, 16}, "`numbers` of members")
	f.IntSliceVar(&o.config.Sizes, "size", []int{64, 8192}, "sizes of a message, in `bytes`")
	f.IntVar(&o.config.Messages, "messages", 1000, "`number` of messages that are timed")
	f.DurationVar(&o.config.Time, "time", 2*time.Second, "`time` at full rate")
	f.StringVar(&o.versus, "compare", "", "`system` to measure too: etcd")
	f.BoolVar(&o.json, "json", false, "print JSON")
	cli.Complete(cmd, "compare", order.Etcd)
	return cmd
}

func (o *orderCommand) run(cmd *cobra.Command) error {
	if o.versus != "" {
		if o.versus != order.Etcd {
			return fmt.Errorf("--compare %s: choose etcd", o.versus)
		}
		o.config.Systems = append(o.config.Systems, o.versus)
	}
	if err := o.config.Check(); err != nil {
		return err
	}
	return measure(cmd, o.config.Steps(), func(ctx context.Context, bar *progress) (measured, error) {
		o.config.Progress = bar.update
		results, err := order.Run(ctx, o.config)
		m := measured{done: bar.stop(), of: o.config.Steps(), what: "measurements"}
		if len(results) > 0 {
			m.write = func(w io.Writer) error { return o.write(w, results) }
		}
		return m, err
	})
}

func (o *orderCommand) write(w io.Writer, results []order.Result) error {
	if o.json {
		return bench.WriteResults(w, results)
	}
	return order.WriteTable(w, results)
}
