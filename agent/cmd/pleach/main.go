// Command pleach runs, joins and inspects groups whose messages arrive although
// processes die, and runs jobs on one host or several. The lab is lab/cmd/pleach-lab: this
// command links nothing that draws or simulates at length.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
)

func main() { os.Exit(cli.Run(newRoot())) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pleach",
		Short: "Group communication that finishes even when processes die",
		Long: `Pleach sends a message along a tree, as fast as the network allows, and closes the
gaps that dead processes leave from their neighbors on a ring. It also agrees on the
members of a group, and runs collective operations that survive deaths.

Use this command to run an agent on each host and to talk through it, to join and
inspect running groups, and to start groups of processes and inject faults. To draw and
simulate broadcasts, to measure and to replay recordings, use pleach-lab.`,
		Example: `  pleach join --create --listen 127.0.0.1:7000
  pleach agent --expect 3 db1:7000 db2:7000 db3:7000
  pleach run -n 4 ./prog`,
	}
	return cli.Root(root, append(newMoved(),
		newAgent(), newWitness(), newSend(), newListen(), newQuery(), newCp(), newLock(), newLockSupervisor(),
		newKV(), newRollout(),
		newStatus(),
		newHealth(),
		newJoin(), newMembers(), newForceView(), newRaiseVersion(), newEvict(), newSecret(), newPs(), newTrace(),
		newRun(), newHost(), newSort())...)
}
