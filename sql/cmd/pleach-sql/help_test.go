package main

import (
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/prose"
)

// Help texts are in plain English.
func TestHelpIsPlainEnglish(t *testing.T) {
	root := newRoot()
	texts := map[string]string{root.Name(): strings.Join([]string{root.Short, root.Long, root.UsageString()}, "\n")}
	for _, cmd := range root.Commands() {
		texts[cmd.CommandPath()] = strings.Join([]string{cmd.Short, cmd.Long, cmd.UsageString()}, "\n")
	}
	for _, c := range prose.Help(texts) {
		t.Error(c)
	}
}
