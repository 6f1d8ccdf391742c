package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// moved are the commands that pleach-lab has now: scripts may still call them here.
var moved = []string{"bench", "replay", "reproduce", "sim", "tree", "tune"}

// newMoved says where the commands are.
func newMoved() (commands []*cobra.Command) {
	for _, name := range moved {
		commands = append(commands, &cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return fmt.Errorf("%s is in another program: write pleach-lab %[1]s, with the same flags; go install github.com/pleach-go/pleach/lab/cmd/pleach-lab@latest installs it", name)
			},
		})
	}
	return commands
}
