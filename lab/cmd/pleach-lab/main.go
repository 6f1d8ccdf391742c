// Command pleach-lab is the lab: it draws broadcast trees, simulates
// broadcasts, tunes them to a network, reproduces papers, and compares Pleach with
// other systems.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
)

func main() { os.Exit(cli.Run(newRoot())) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pleach-lab",
		Short: "Draw, simulate and measure broadcasts that finish even when processes die",
		Long: `Draw the trees of Pleach, simulate broadcasts in the LogP model, choose settings for a
network, reproduce the papers, and measure groups on this host. The command pleach runs groups.`,
		Example: `  pleach-lab tree --shape lame:3 -P 9
  pleach-lab sim --shape optimal -P 65536 --faults 1%
  pleach-lab bench broadcast --members 32`,
	}
	return cli.Root(root, newTree(), newSim(), newTune(), newReproduce(), newBench(), newWorker())
}
