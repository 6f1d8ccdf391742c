package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NoArguments says more than cobra, which calls a stray word a command.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: %s takes flags only, see %[2]s --help", args[0], cmd.CommandPath())
	}
	return nil
}

// Complete offers words for a flag to the shell.
func Complete(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
}

// FlagError says which flag an error of the library is about. On a command line
// the name of the package does not help.
func FlagError(flag string, err error) error {
	return fmt.Errorf("--%s: %s", flag, ShellText(err))
}

// flagNames has the flags that set the fields of a Config.
var flagNames = strings.NewReplacer(
	"Config.Advertise", "--advertise", "Config.Recovery.DataDir", "--data-dir", "Config.Expect", "--expect",
	"Config.FailureDomain", "--failure-domain", "Config.Group", "--group", "Config.ID", "--id",
	"Config.Listen", "--listen", "Config.Recovery.Replace", "--replace", "Config.Security.SecretFile", "--secret-file",
	"Config.Security.Secret", "--secret-file", "Config.Security.TLS", "--tls-cert",
)

// ShellText is an error of the library for a reader of a command line.
func ShellText(err error) string {
	text := strings.ReplaceAll(flagNames.Replace(err.Error()), ": pleach: ", ": ")
	for _, name := range []string{"topology", "experiments", "broadcast", "logp", "pleach"} {
		if rest, ok := strings.CutPrefix(text, name+": "); ok {
			return rest
		}
	}
	return text
}
