// Command peers compares Pleach with systems that are in use to send to all members
// of a group: NATS, a tree of gRPC streams, memberlist, serf and gossipsub.
//
// It is a module of its own, so that Pleach depends on none of them. Package
// lab/bench/broadcast measures; each peer has a file that sets it up.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/broadcast"
	"github.com/pleach-go/pleach/lab/peers/internal/program"
)

const usage = `Compare Pleach with its peers: the time from before the root's call until the
last member's program has the message. All members are in this process and talk over
loopback. All systems run at the same time and are interleaved round by round, so
that other load of the host falls on all alike. Only ratios within one run mean
something.

A round is complete when every member has the message within a second; only complete
rounds have times. Messages and bytes are what a member receives per round, copies
included, and - if the system does not tell. Goroutines and memory (live heap and
stacks) are what the process holds more with the group than without, per member. The
processor's time, in JSON only, includes what all groups do in the background.

Usage: go run . [flags]
       go run . silent [flags]    members that die without a sign, see its --help

`

// command is what was asked for.
type command struct {
	config         broadcast.Config // but for the members
	members        []int
	json, markdown bool
}

func main() {
	program.Main("peers", func(ctx context.Context) error { return dispatch(ctx, os.Args[1:]) })
}

// dispatch does what the first argument says.
func dispatch(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "silent":
		return runSilent(ctx, args[1:], os.Stdout, os.Stderr)
	case len(args) == 2 && args[0] == "silent-member":
		return serveSilent(ctx, args[1])
	}
	return run(ctx, args, os.Stdout, os.Stderr)
}

// run measures, and writes what was measured even if it ends early.
func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	c, err := parse(args, errOut)
	if err != nil {
		return err
	}
	var all []broadcast.Result
	for _, members := range c.members {
		config := c.config
		config.Members = members
		show, clear := progress(errOut, members, config.Rounds)
		config.Progress = show
		var results []broadcast.Result
		results, err = broadcast.Run(ctx, config)
		clear()
		all = append(all, results...)
		if err != nil {
			break
		}
	}
	return errors.Join(err, c.write(out, all))
}

func parse(args []string, errOut io.Writer) (*command, error) {
	c := &command{config: broadcast.Config{Dead: []int{0}, Footprint: true}}
	names := []string{"pleach", "bare"}
	for _, p := range peers() {
		c.config.External = append(c.config.External, p.System)
		names = append(names, p.Name)
	}
	f := program.NewFlags("peers", usage, errOut)
	members := f.String("members", "32,128", "`numbers` of members; each is measured")
	systems := f.String("systems", strings.Join(names, ","), "`systems` to measure")
	f.IntVar(&c.config.Rounds, "rounds", 200, "number `R` of rounds")
	f.IntVar(&c.config.Size, "size", 64, "size of a message, in `bytes`")
	f.Uint64Var(&c.config.Seed, "seed", 1, "`seed` that chooses the order of systems in a round")
	f.BoolVar(&c.json, "json", false, "print JSON")
	f.BoolVar(&c.markdown, "markdown", false, "print the table in Markdown")
	if err := program.Parse(f, args); err != nil {
		return nil, err
	}
	var err error
	c.config.Systems, err = program.Choose(*systems, names)
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(*members, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("--members %s: %q is not a number: write numbers with commas between them, as in 32,128",
				*members, text)
		}
		c.members = append(c.members, n)
		config := c.config
		config.Members = n
		if err := config.Check(); err != nil { // before the first takes its time
			return nil, err
		}
	}
	return c, nil
}

func (c *command) write(w io.Writer, results []broadcast.Result) error {
	switch {
	case len(results) == 0:
		return nil
	case c.json:
		return bench.WriteResults(w, results)
	default:
		return writeTable(w, results, c.markdown)
	}
}
