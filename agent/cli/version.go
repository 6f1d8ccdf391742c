package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// release and commit are set by the linker in packages. Elsewhere they are
// what the Go command has recorded: there is no number to forget to raise.
var release, commit string

// Build is what the command version tells.
type Build struct {
	Version string `json:"version"`
	// Commit is empty if the build has not recorded it.
	Commit string `json:"commit,omitempty"`
	// Protocol is the highest protocol version that this build speaks with other members,
	// and MinProtocol the lowest.
	Protocol    int    `json:"protocol"`
	MinProtocol int    `json:"min_protocol"`
	Go          string `json:"go"`
}

func newVersion(program string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit and the protocol versions of this command",
		Example: fmt.Sprintf("  %s version\n  %[1]s version --json", program),
		Args:    NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return readVersion().write(cmd.OutOrStdout(), program, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// addVersionFlag makes --version tell what the command does. Cobra writes the name of the
// program and the word version before it. A template of our own would do without the word, and
// make the program 3 MB larger: text/template keeps the linker from leaving out methods.
func addVersionFlag(root *cobra.Command) {
	var text strings.Builder
	_ = readVersion().write(&text, root.Name(), false) // a builder takes everything
	root.Version = strings.TrimSpace(strings.TrimPrefix(text.String(), root.Name()))
	root.Flags().Bool("version", false, "print the version")
}

func (v Build) write(w io.Writer, command string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(v)
	}
	_, err := fmt.Fprintf(w, "%s %s %s\ncommit %s\nprotocol %d to %d\n",
		command, v.Version, v.Go, cmp.Or(v.Commit, "unknown"), v.MinProtocol, v.Protocol)
	return err
}

func readVersion() Build {
	v := Build{
		Version: release, Commit: commit, Protocol: int(wire.Newest()), MinProtocol: wire.MinVersion,
		Go: "of unknown version",
	}
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

// Version names the build, as for files that it leaves.
func Version() string {
	v := readVersion()
	return fmt.Sprintf("pleach %s %s", v.Version, v.Go)
}

// VersionNumber is the module's version.
func VersionNumber() string { return readVersion().Version }
