package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newBench groups the benchmarks.
func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure broadcasts, view changes, collectives, recovery, sorting, copies of files, scale, unresponsive members, fleets, order and shards on this host",
		Long: `Measure Pleach on this host, and other systems next to it. Each benchmark interleaves
the systems that it compares in one run, because only ratios of one run mean
something.`,
		Example: `  pleach-lab bench broadcast --compare bare,flat
  pleach-lab bench stabilization --members 16
  pleach-lab bench collectives --compare openmpi
  pleach-lab bench restart --json
  pleach-lab bench sort --compare gnu
  pleach-lab bench cp --dir /dev/shm
  pleach-lab bench scale --members 64,256,1024
  pleach-lab bench silent --members 32 --compare bare
  pleach-lab bench fleet --zones 16 --members 32 --delay 20ms
  pleach-lab bench order --members 3,5
  pleach-lab bench shards --members 16 --partitions 1024`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is not something to measure: choose broadcast, stabilization, collectives, restart, sort, cp, scale, silent, fleet, order or shards", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchBroadcast(), newBenchStabilization(), newBenchCollectives(), newBenchRestart(), newBenchSort(),
		newBenchCp(), newBenchScale(), newBenchSilent(), newBenchFleet(), newBenchOrder(), newBenchShards())
	return cmd
}
