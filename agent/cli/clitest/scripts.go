// Package clitest is what the tests of the commands have in common.
package clitest

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// RunScripts runs the scripts of testdata/script, which use a command as people do.
func RunScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// The race detector would hold up every exit for a second.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"build": build, "exits": exits, "lines": lines},
	})
}

// build compiles a command of this module and puts it in PATH: build pleach.
func build(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: build COMMAND")
	}
	folder := ts.MkAbs("bin")
	// The environment of a script has no home, where Go keeps what it has built.
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", folder+string(filepath.Separator),
		"github.com/pleach-go/pleach/cmd/"+args[0]).CombinedOutput()
	if err != nil {
		ts.Fatalf("%v: %s", err, out)
	}
	ts.Setenv("PATH", folder+string(filepath.ListSeparator)+ts.Getenv("PATH"))
}

// exits runs a command that must end with a code: exits 2 pleach-lab tree --shape x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// lines counts the lines of a file: lines stdout 10.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE NUMBER")
	}
	if got := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], got, args[1])
	}
}

// Printed runs a command in this process and returns what it prints.
func Printed(t *testing.T, cmd *cobra.Command, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%s %v: %v", cmd.Name(), args, err)
	}
	return out.String()
}
