package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newBench groups the benchmarks, and the hidden commands that they start processes
// with.
func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure broadcasts, view changes, collectives, recovery, sorting, copies of files, scale and fleets on this host",
		Long: `Measure Pleach on this host, and other systems beside it. Each benchmark interleaves
the systems that it compares in one run, because only ratios of one run mean
something.`,
		Example: `  pleach bench broadcast --compare bare,flat
  pleach bench stabilization --members 16
  pleach bench collectives --compare openmpi
  pleach bench restart --json
  pleach bench sort --compare gnu
  pleach bench cp --dir /dev/shm
  pleach bench scale --members 64,256,1024
  pleach bench fleet --zones 16 --members 32 --delay 20ms`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is not something to measure: choose broadcast, stabilization, collectives, restart, sort, cp, scale or fleet", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchBroadcast(), newBenchStabilization(), newBenchCollectives(), newBenchRestart(), newBenchSort(), newBenchCp(), newBenchScale(), newBenchFleet(),
		newBenchMember(), newBenchSurvivor(), newBenchCollectivesMember(), newBenchTask(), newBenchWorker(), newBenchReceiver())
	return cmd
}
