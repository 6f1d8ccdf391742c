package main

import (
	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/config"
)

// A witness (Pâris 1986) votes, so that a group of two survives the death of either member, and
// does no work of the group. It is an agent, so that it installs views and acknowledges what the others
// order, like every voter.
func newWitness() *cobra.Command {
	var file string
	var logJSON bool
	cmd := &cobra.Command{
		Use:   "witness [SEED...]",
		Short: "Run a third voter on a small machine for a group of two",
		Long: `Join a group as a voter that does no work: it runs no handlers, takes no files and
retains no messages. A group of two agents and a witness survives the death of any one of
them. Like every agent, a witness has a copy of the group's keys and locks in memory, and
with --data-dir its vote on the disk.

Its settings are those of pleach agent. With an arbiter instead (pleach agent --arbiter),
no third process is needed.`,
		Example: `  pleach witness --expect 3 --listen small:7000 --data-dir /var/lib/pleach db1:7000 db2:7000 small:7000`,
		RunE: func(cmd *cobra.Command, seeds []string) error {
			all := loader(cmd, file, seeds)
			load := func() (*config.Config, error) {
				c, err := all()
				if err != nil {
					return nil, err
				}
				c.Handlers, c.FileDirs, c.RetainMessages = nil, nil, 1
				return c, nil
			}
			if _, err := load(); err != nil {
				return err // the caller's
			}
			return runAgent(cmd, load, logJSON)
		},
	}
	settingFlags(cmd, &file, &logJSON)
	return cmd
}
