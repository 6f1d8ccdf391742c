package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Clocks. Histories are written by the clock of an observer: the kernel's monotonic one, which all
// processes of a machine share. The members' clock is that of package time, which a nemesis
// steps and runs at another rate: members are built with a package time of which a few lines
// differ, so that all of Pleach has that clock and no code of it knows.

// observe returns the time by the observer's clock, in ns.
func observe() int64 {
	var t syscall.Timespec
	const monotonic = 1
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&t)),
		0); errno != 0 {
		panic(errno) // there is such a clock
	}
	return t.Nano()
}

// shift is what a nemesis does to a clock.
type shift struct {
	// Step is added to the time of day. Rate is by how many millionths the monotonic clock is
	// faster.
	Step time.Duration
	Rate int64
}

// maxRate bounds Rate: the clocks of two members differ by less than the drift of the leases.
const maxRate = 40_000

// shiftFile is where a member finds what its clock is to be.
func shiftFile(dir, id string) string { return filepath.Join(dir, id+".clock") }

// followShifts shifts the clock of this process at each signal.
func followShifts(file string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			var s shift
			if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &s) == nil {
				shiftClock(s)
			}
		}
	}()
}

// shiftSource is added to package time.
const shiftSource = `package time

import "sync/atomic"

type shift struct {
	step, rate   int64
	since, reads int64
}

var shifted atomic.Pointer[shift]

// ShiftClock steps the time of day and changes the rate of the monotonic clock.
func ShiftClock(step Duration, rate int64) {
	now := runtimeNano()
	shifted.Store(&shift{int64(step), rate, now, shiftedNano(now)})
}

func shiftedNano(now int64) int64 {
	s := shifted.Load()
	if s == nil {
		return now
	}
	return s.reads + (now - s.since) + (now-s.since)/1000*s.rate/1000
}

func shiftedNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	if s := shifted.Load(); s != nil {
		wall := sec*1e9 + int64(nsec) + s.step
		sec, nsec = wall/1e9, int32(wall%1e9)
	}
	return sec, nsec, shiftedNano(mono)
}
`

// timeChanges are the changes to the source of package time. Timers belong to the runtime, and are
// not shifted.
var timeChanges = []struct{ old, new string }{
	{"	sec, nsec, mono := runtimeNow()\n", "	sec, nsec, mono := shiftedNow()\n"},
	{"subMono(runtimeNano()-startNano, t.ext)", "subMono(shiftedNano(runtimeNano())-startNano, t.ext)"},
	{"subMono(t.ext, runtimeNano()-startNano)", "subMono(t.ext, shiftedNano(runtimeNano())-startNano)"},
}

// buildMember builds the program of members from the directory of this module, with a clock that can
// be shifted. Files in replaced stand for others.
func buildMember(source, program string, replaced map[string]string) error {
	dir, err := os.MkdirTemp("", "pleach-verify-overlay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("verify: go env GOROOT: %w", err)
	}
	at := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(at, "time.go"))
	if err != nil {
		return err
	}
	for _, c := range timeChanges {
		if strings.Count(string(text), c.old) != 1 {
			return fmt.Errorf("verify: package time of this Go has no line %q", c.old)
		}
		text = []byte(strings.Replace(string(text), c.old, c.new, 1))
	}
	files := map[string]string{
		filepath.Join(at, "time.go"):  filepath.Join(dir, "time.go"),
		filepath.Join(at, "shift.go"): filepath.Join(dir, "shift.go"),
	}
	for name, by := range replaced {
		files[name] = by
	}
	if err = errors.Join(os.WriteFile(filepath.Join(dir, "time.go"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "shift.go"), []byte(shiftSource), 0o600)); err != nil {
		return err
	}
	return build(source, ".", program, files, "-tags", "shifted")
}

// buildAgent builds the pleach command from the directory of its module.
func buildAgent(root, program string, replaced map[string]string) error {
	return build(root, "./agent/cmd/pleach", program, replaced)
}

// build builds a program of the module in a directory. Files in replaced stand for others.
func build(source, name, program string, replaced map[string]string, flags ...string) error {
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err = errors.Join(err, os.WriteFile(program+".overlay", overlay, 0o600)); err != nil {
		return err
	}
	defer os.Remove(program + ".overlay")
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-overlay", program+".overlay", "-o", program,
		name)...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("verify: build %s: %w: %s", program, err, out)
	}
	return nil
}
