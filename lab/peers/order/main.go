// Command order compares messages in one order with systems that are in use for them: puts to
// etcd, and a stream of NATS JetStream with three replicas.
//
// Package lab/bench/order measures; each peer has a file that sets it up.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/order"
	"github.com/pleach-go/pleach/lab/peers/internal/program"
)

const usage = `Measure messages in one order: the time from before the call of a member that does not
lead until the last member has the message, and the rate of the slowest member while all send.
The systems take turns. Only ratios within one run mean something.

  broadcast   Pleach's broadcast, which orders the messages of one sender only
  order       package ordered
  safe        package ordered with Safe: a majority has what is delivered
  etcd-puts   puts by etcd's client, to as many servers as members, five at most; a time
              is until the put returns, a rate that of 32 callers of each member
  jetstream   a stream with three replicas on three servers in this process, which keep
              it in files; every member publishes and has a consumer of its own

etcd and JetStream keep what they are given on disks, without waiting for the disk in
JetStream. Pleach keeps nothing.

Usage: go run ./order [flags]

`

func main() {
	program.Main("order", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// run measures, and writes what was measured even if it ends early.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	c := order.Config{External: []order.System{etcdSystem(), jetStreamSystem()}}
	names := []string{order.Broadcast, order.Order, order.Safe, etcdName, jetStreamName}
	f := program.NewFlags("order", usage, errOut)
	members := f.String("members", "3,5,16", "`numbers` of members")
	sizes := f.String("size", "64,8192", "sizes of a message, in `bytes`")
	systems := f.String("systems", strings.Join(names, ","), "`systems` to measure")
	f.IntVar(&c.Messages, "messages", 1000, "`number` of messages that are timed")
	f.DurationVar(&c.Time, "time", 2*time.Second, "`time` at full rate")
	asJSON := f.Bool("json", false, "print JSON")
	if err := program.Parse(f, args); err != nil {
		return err
	}
	var err, errMembers, errSizes error
	c.Systems, err = program.Choose(*systems, names)
	c.Members, errMembers = numbers("members", *members)
	c.Sizes, errSizes = numbers("size", *sizes)
	if err = errors.Join(err, errMembers, errSizes); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	results, err := order.Run(ctx, c)
	switch {
	case len(results) == 0:
		return err
	case *asJSON:
		return errors.Join(err, bench.WriteResults(out, results))
	}
	return errors.Join(err, order.WriteTable(out, results))
}

// numbers parses a list.
func numbers(flag, list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("--%s %s: %q is not a number: write numbers with commas between them", flag, list, text)
		}
		all = append(all, n)
	}
	return all, nil
}
