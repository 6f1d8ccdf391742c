package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this command",
		Example: "  pleach version",
		Args:    noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), version())
		},
	}
}

// version is what the Go command recorded at build time: there is no number to
// forget to raise.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "pleach, built without version information"
	}
	return fmt.Sprintf("pleach %s %s", versionNumber(), info.GoVersion)
}

// versionNumber is the module's version.
func versionNumber() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
