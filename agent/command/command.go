// Package command runs the commands of an agent's own file, bounded in time and output.
// Nothing that comes over the network is ever part of a command: it is its input and its
// environment.
package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Line is a command: a text for the shell, or a program and its arguments.
type Line struct {
	shell string
	args  []string
}

// Shell returns a command for the shell.
func Shell(text string) Line { return Line{shell: text} }

// UnmarshalYAML reads a text or a list.
func (l *Line) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode(&l.args)
	}
	return node.Decode(&l.shell)
}

// Empty reports whether there is no command.
func (l Line) Empty() bool { return strings.TrimSpace(l.shell) == "" && len(l.args) == 0 }

// String returns the command as it is written.
func (l Line) String() string {
	if len(l.args) > 0 {
		return fmt.Sprintf("%q", l.args)
	}
	return l.shell
}

// maxOutput bounds what is kept of a command's output, and waitDelay how long its
// children may keep its output open after it was ended.
const (
	maxOutput = 1 << 20
	waitDelay = 2 * time.Second
)

// Run runs a command until ctx ends, with an input and variables in addition to those
// of this process, and returns its standard output. An error has the end of its standard error.
func (l Line) Run(ctx context.Context, input []byte, variables ...string) ([]byte, error) {
	args := l.args
	switch {
	case len(args) > 0:
	case runtime.GOOS == "windows":
		args = []string{"cmd", "/C", l.shell}
	default:
		args = []string{"/bin/sh", "-c", l.shell}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, errOut bounded
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errOut
	cmd.Env = append(os.Environ(), variables...)
	cmd.WaitDelay = waitDelay
	inOwnGroup(cmd)
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", l, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("%s: %w%s", l, err, errOut.lastLine())
	case out.over:
		return nil, fmt.Errorf("%s: its output is longer than %d bytes", l, maxOutput)
	}
	return out.kept, nil
}

// bounded keeps the beginning of what is written.
type bounded struct {
	kept []byte
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), maxOutput-len(b.kept))
	b.over = b.over || room < len(p)
	b.kept = append(b.kept, p[:room]...)
	return len(p), nil
}

// lastLine is the last line that was written, for an error.
func (b *bounded) lastLine() string {
	text := strings.TrimSpace(string(b.kept))
	if text == "" {
		return ""
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}
