//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// signals are those that --warn knows, and that pleach lock passes on.
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func signalNamed(name string) (os.Signal, error) {
	s, ok := signals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
	if !ok {
		return nil, fmt.Errorf("--warn is %q: write HUP, INT, QUIT, TERM, USR1 or USR2", name)
	}
	return s, nil
}

// forwarded returns the signals of this process that its command gets, too, until stop is called.
func forwarded() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 8)
	for _, s := range signals {
		signal.Notify(c, s)
	}
	return c, func() { signal.Stop(c) }
}

// commandCode is the exit code for a command that cannot be run, as shells have it.
func commandCode(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return 127
	}
	return 126
}
