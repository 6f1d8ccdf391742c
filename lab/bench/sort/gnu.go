package sort

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// checkGNU returns an error unless sort is that of GNU.
func checkGNU() error {
	if out, _ := exec.Command("sort", "--version").Output(); !strings.Contains(string(out), "GNU coreutils") {
		return errors.New("--compare gnu: the command sort is not that of GNU coreutils")
	}
	return nil
}

// runGNU sorts a file into another one with GNU sort.
func runGNU(ctx context.Context, input, output string) (usage, error) {
	cmd := exec.CommandContext(ctx, "sort", "--parallel=2", "-o", output, input)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return usage{}, fmt.Errorf("bench: GNU sort: %w", err)
	}
	return usage{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}
