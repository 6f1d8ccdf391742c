package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan writes the manual pages, for packages. pleach completion has the completions.
func newMan(program string) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a manual page for each command into a directory",
		Example: "  " + program + " man /usr/local/share/man/man1",
		Hidden:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("write a directory, as in %s man /usr/local/share/man/man1", program)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return Failure(err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it has today's date
			indent(root)
			header := &doc.GenManHeader{Section: "1", Source: "Pleach " + VersionNumber(), Manual: "Pleach"}
			return Failure(doc.GenManTree(root, header, args[0]))
		},
	}
}

// indent makes lines of help that are indented by two spaces verbatim: in the Markdown that
// pages are made from, that takes four.
func indent(cmd *cobra.Command) {
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n    ")
	for _, c := range cmd.Commands() {
		indent(c)
	}
}
