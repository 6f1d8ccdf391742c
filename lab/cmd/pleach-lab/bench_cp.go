package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/bench/cp"
)

// benchCpCommand measures copies of a file.
type benchCpCommand struct {
	config cp.Config
	json   bool
}

func newBenchCp() *cobra.Command {
	c := benchCpCommand{config: cp.Config{Command: workerCommand("cp")}}
	cmd := &cobra.Command{
		Use:   "cp",
		Short: "Measure how long a file takes to reach every member",
		Long: `Copy a file to processes on this host, as pleach cp does, and measure the time from
before it is read until every process has confirmed that it has it, verified and synced,
under its name. In every trial, the same processes do the same in two other ways:

  chain  each process passes on to the next one what it reads: a pipelined chain over
         plain TCP, and nothing else. The death of a process would end it.
  flat   a loop of single copies over plain TCP, one after the other, as with scp

All three read, hash, write and sync as much. One copy is the sender's own, by all three.
The copies need --members times --size of room, and a file system that is faster than the
processors, such as one in memory: otherwise it is the file system that is measured.`,
		Example: `  pleach-lab bench cp --dir /dev/shm
  pleach-lab bench cp --members 8 --size 268435456 --trials 5 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&c.config.Members, "members", 16, "number `N` of processes that get the file, the sender included")
	f.Int64Var(&c.config.Size, "size", 1<<30, "size of the file, in `bytes`")
	f.IntVar(&c.config.Trials, "trials", 3, "number `T` of trials")
	f.StringVar(&c.config.Dir, "dir", "", "`directory` for the file and its copies (default: that for temporary files)")
	f.BoolVar(&c.json, "json", false, "print JSON")
	return cmd
}

func (c *benchCpCommand) run(cmd *cobra.Command) error {
	if err := c.config.Check(); err != nil {
		return err
	}
	return measure(cmd, c.config.Copies(), func(ctx context.Context, bar *progress) (measured, error) {
		c.config.Progress = bar.update
		result, err := cp.Run(ctx, c.config)
		m := measured{done: result.Trials, of: c.config.Trials, what: "trials"}
		if result.Trials > 0 {
			m.write = func(w io.Writer) error { return c.write(w, &result) }
		}
		return m, err
	})
}

func (c *benchCpCommand) write(w io.Writer, r *cp.Result) error {
	if c.json {
		return json.NewEncoder(w).Encode(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d bytes to %d processes, %s; ms until all have it\n\n", r.Size, r.Members,
		cli.Count(r.Trials, "trial"))
	fmt.Fprintf(&b, "%-8s %9s %9s %15s\n", "", "p50", "cpu p50", "pleach is")
	fmt.Fprintf(&b, "%-8s %9.0f %9.0f\n", "pleach", r.Pleach, r.PleachCPU)
	fmt.Fprintf(&b, "%-8s %9.0f %9.0f %7.2f of it\n", "chain", r.Chain, r.ChainCPU, r.OfChain)
	fmt.Fprintf(&b, "%-8s %9.0f %9.0f %7.2f of it\n", "flat", r.Flat, r.FlatCPU, r.OfFlat)
	_, err := io.WriteString(w, b.String())
	return err
}
