package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/lab/bench"
	"github.com/pleach-go/pleach/lab/bench/collectives"
)

// collectivesCommand measures collectives.
type collectivesCommand struct {
	config                       collectives.Config
	members, sizes, ops, compare string
	choices, json                bool
}

func newBenchCollectives() *cobra.Command {
	c := collectivesCommand{config: collectives.Config{Command: workerCommand("collectives")}}
	cmd := &cobra.Command{
		Use:   "collectives",
		Short: "Measure collectives, and those of Open MPI",
		Long: `Measure collectives among processes on this host, which share memory as the processes of
every job on one host do. Operations that combine values add up float64. Each round is a
barrier and then one operation. Its time is that of the slowest member. Each member has one
processor (GOMAXPROCS=1), as a rank of an MPI program has.

  run-through  the default: the operation completes with the right result even when
               members die
  plain        the same algorithms, but failures are only reported, and nothing is
               kept for takeovers (collective.Report)
  openmpi      with --compare openmpi, in the same run and interleaved with Pleach: a
               program that does the same, compiled here by mpicc. It runs over TCP on
               loopback only (pml ob1, btl tcp,self), unbound. Where there are more
               ranks than processors it yields when idle (mpi_yield_when_idle), which
               is its default.
  openmpi-shm  the same calls over Open MPI's own shared memory (btl vader,self), which is
               what it takes on one host automatically

Rounds follow each other in blocks. The first round of a block, before which all members
were idle, counts apart (idle). The rounds of its first 20 ms do not count: the processes
still find their processors. Processor time (cpu) is that of all members in a round and its
barrier.

Only ratios of one run mean something: all systems share the host. A size is that of
each member's input or, in Alltoall and Exchange, of its block for each other member.
Exchange is with the neighbors on a grid (in MPI, MPI_Neighbor_alltoallv), and Split makes
its rows. Where a round
takes long, there are fewer than --rounds.`,
		Example: `  pleach-lab bench collectives --compare openmpi
  pleach-lab bench collectives --members 4 --sizes 8 --operations allreduce,barrier --json
  pleach-lab bench collectives --choices`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&c.members, "members", "4,8,16", "`numbers` of members, each a process")
	f.StringVar(&c.sizes, "sizes", "8,65536,4194304", "`sizes` in bytes")
	f.StringVar(&c.ops, "operations", strings.Join(collectives.Operations(), ","), "`operations` to measure")
	f.IntVar(&c.config.Rounds, "rounds", 800, "number `R` of rounds at most")
	f.StringVar(&c.compare, "compare", "", "`system` to measure too: openmpi")
	f.BoolVar(&c.choices, "choices", false, "only print which algorithm the most members take from how many bytes on")
	f.BoolVar(&c.json, "json", false, "print JSON")
	cli.Complete(cmd, "compare", "openmpi")
	return cmd
}

func (c *collectivesCommand) run(cmd *cobra.Command) error {
	if err := c.parse(); err != nil {
		return err
	}
	if c.choices {
		return c.writeChoices(cmd.OutOrStdout())
	}
	return measure(cmd, c.config.Steps(), func(ctx context.Context, bar *progress) (measured, error) {
		c.config.Progress = bar.update
		results, without, err := collectives.Run(ctx, c.config)
		m := measured{done: bar.stop(), of: c.config.Steps(), what: "measurements"}
		if len(results) > 0 {
			m.write = func(w io.Writer) error { return c.write(w, results) }
		}
		if without != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "Open MPI was not measured: %s.\n", without)
		}
		return m, err
	})
}

// parse completes the config from flags.
func (c *collectivesCommand) parse() (err error) {
	c.config.Members, err = parseNumbers("--members", c.members)
	if err != nil {
		return err
	}
	c.config.Sizes, err = parseNumbers("--sizes", c.sizes)
	if err != nil {
		return err
	}
	c.config.Operations = strings.Split(c.ops, ",")
	switch c.compare {
	case "":
	case "openmpi":
		c.config.OpenMPI = true
	default:
		return fmt.Errorf("--compare %s: choose openmpi", c.compare)
	}
	return c.config.Check()
}

func (c *collectivesCommand) writeChoices(w io.Writer) error {
	var err error
	rules := collective.Network{}.Algorithms(slices.Max(c.config.Members), 1)
	if c.json {
		err = json.NewEncoder(w).Encode(struct {
			Choices []collective.AlgorithmRule `json:"choices"`
		}{rules})
	} else {
		for _, rule := range rules {
			if _, err = fmt.Fprintln(w, rule); err != nil {
				break
			}
		}
	}
	return cli.Failure(err)
}

func (c *collectivesCommand) write(w io.Writer, results []collectives.Result) error {
	if c.json {
		return bench.WriteResults(w, results)
	}
	return writeCollectivesTable(w, results)
}
