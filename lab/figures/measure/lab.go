package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/pleach-go/pleach/lab/figures"
)

// lab runs commands, and remembers them and the first that failed.
type lab struct {
	commands []string
	err      error
}

// measure runs a command that prints JSON, and decodes it. After a failure it does nothing.
func (l *lab) measure(result any, command string) {
	l.commands = append(l.commands, command)
	text := l.output(command)
	if l.err == nil {
		if err := json.Unmarshal(text, result); err != nil {
			l.err = fmt.Errorf("%s: %w", command, err)
		}
	}
}

// output runs a command whose words have no spaces in them.
func (l *lab) output(command string) []byte {
	if l.err != nil {
		return nil
	}
	words := strings.Fields(command)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		l.err = fmt.Errorf("%s: %w", command, err)
	}
	return bytes.TrimSpace(out)
}

// clean refuses to measure code that is in no commit: a record names the commit that it is from.
func (l *lab) clean() {
	if changed := l.output("git status --porcelain -- :!docs :!README.md"); l.err == nil && len(changed) > 0 {
		l.err = fmt.Errorf("commit these changes first, records name their commit:\n%s", changed)
	}
}

// describe writes into tables where they are from.
func (l *lab) describe(tables []figures.Table) {
	commit := string(l.output("git rev-parse --short=7 HEAD"))
	machine := machine()
	for i := range tables {
		t := &tables[i]
		t.Date, t.Commit, t.Machine, t.Commands = time.Now().UTC().Format(time.DateOnly), commit, machine, l.commands
	}
}

var model = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

// machine describes this one.
func machine() string {
	processor, system := runtime.GOARCH, runtime.GOOS
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := model.FindSubmatch(text); m != nil {
			processor = string(m[1])
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		system = "Linux " + strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%d × %s, %s, %s", runtime.NumCPU(), processor, system, runtime.Version())
}
