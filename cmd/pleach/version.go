package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/wire"
)

// release and commit are set by the linker in packages (deploy/build). Elsewhere they are
// what the Go command has recorded: there is no number to forget to raise.
var release, commit string

// versionJSON is what pleach version tells.
type versionJSON struct {
	Version string `json:"version"`
	// Commit is empty if the build has not recorded it.
	Commit string `json:"commit,omitempty"`
	// Protocol is the highest protocol version that this build speaks with other members,
	// and MinProtocol the lowest.
	Protocol    int    `json:"protocol"`
	MinProtocol int    `json:"min_protocol"`
	Go          string `json:"go"`
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the protocol versions of this command",
		Example: `  pleach version
  pleach version --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return readVersion().write(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (v versionJSON) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(v)
	}
	_, err := fmt.Fprintf(w, "pleach %s %s\ncommit %s\nprotocol %d to %d\n",
		v.Version, v.Go, cmp.Or(v.Commit, "unknown"), v.MinProtocol, v.Protocol)
	return err
}

func readVersion() versionJSON {
	v := versionJSON{Version: release, Commit: commit, Protocol: int(wire.Newest()), MinProtocol: wire.MinVersion, Go: "of unknown version"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		v.Go = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = cmp.Or(v.Commit, s.Value)
			}
		}
	}
	v.Version = cmp.Or(v.Version, "(devel)")
	return v
}

// version names the build, as for files that it leaves.
func version() string {
	v := readVersion()
	return fmt.Sprintf("pleach %s %s", v.Version, v.Go)
}

// versionNumber is the module's version.
func versionNumber() string { return readVersion().Version }
