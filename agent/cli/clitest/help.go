package clitest

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/test/prose"
)

// PlainHelp checks that the help of a command and of all commands below it is in plain English, but
// for the names given.
func PlainHelp(t *testing.T, root *cobra.Command, names ...string) {
	t.Helper()
	texts := make(map[string]string)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		texts[cmd.CommandPath()] = strings.Join([]string{cmd.Short, cmd.Long, cmd.UsageString()}, "\n")
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
	for _, c := range prose.Help(texts, names...) {
		t.Error(c)
	}
}
