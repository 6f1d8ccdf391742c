package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pleach-go/pleach/agent/cli/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pleach": main})
}

// TestScripts runs the command as users do.
func TestScripts(t *testing.T) { clitest.RunScripts(t) }

func printed(t *testing.T, args ...string) string {
	t.Helper()
	return clitest.Printed(t, newRoot(), args...)
}

// Help texts are in plain English.
func TestHelpIsPlainEnglish(t *testing.T) { clitest.PlainHelp(t, newRoot()) }
