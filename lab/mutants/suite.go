//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// suite is a package's tests, compiled with all bugs. Each test was run alone without a bug:
// a bug is looked for only by the tests that reach its place, the quick ones first.
type suite struct {
	finder
	directory, binary string
	tests             []test // the quickest first
}

// test is a test function.
type test struct {
	name    string
	took    time.Duration
	reached map[int]bool // bugs whose places it reaches, by number; nil: it may reach all
}

// compile compiles the tests of a directory, and runs each of them without a bug.
func (t *target) compile(ctx context.Context, f finder, directory, binary string) (*suite, error) {
	began := time.Now()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", t.overlay, "-o", binary, directory)
	build.Dir = t.root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("go test -c %s: %w\n%s", directory, err, out))
	}
	s := &suite{finder: f, directory: filepath.Join(t.root, directory), binary: binary}
	names, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	err = parallel(t.workers, names, func(name string) error {
		one, err := s.measure(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		s.tests = append(s.tests, one)
		return err
	})
	fmt.Fprintf(os.Stderr, "%s: %d tests, %.0f s until here\n", directory, len(names), time.Since(began).Seconds())
	slices.SortFunc(s.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return s, errors.Join(ctx.Err(), err)
}

// list returns the names of the tests that the finder runs.
func (s *suite) list(ctx context.Context) (names []string, err error) {
	c := exec.CommandContext(ctx, s.binary, "-test.list", cmp.Or(s.run, "."))
	c.Dir = s.directory
	out, err := c.Output()
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			names = append(names, name)
		}
	}
	return names, err
}

// measure runs a test without a bug.
func (s *suite) measure(ctx context.Context, name string) (test, error) {
	if s.unmeasured {
		return test{name: name, took: time.Minute}, nil
	}
	one := test{name: name, reached: map[int]bool{}}
	trace := s.binary + "." + name
	began := time.Now()
	failed, out := s.attempt(ctx, []string{name}, 10*time.Minute, "MUTANT_REACHED="+trace)
	if failed { // a busy machine is forgiven once
		began = time.Now()
		failed, out = s.attempt(ctx, []string{name}, 10*time.Minute, "MUTANT_REACHED="+trace)
	}
	if failed {
		return one, errors.Join(ctx.Err(), fmt.Errorf("%s of %s fails without a bug:\n%s", name, s.directory, out))
	}
	one.took = time.Since(began)
	list, err := os.ReadFile(trace)
	for line := range strings.FieldsSeq(string(list)) {
		number, bad := strconv.Atoi(line)
		err = errors.Join(err, bad)
		one.reached[number] = true
	}
	return one, err
}

// find runs the tests that reach a bug's place, and reports whether there are some, and
// whether one of them fails. Tests run together as long as they take little: each run takes
// up to four times as long as the one before it, and one that lasts much longer than without
// the bug does not end.
func (s *suite) find(ctx context.Context, bug int) (reached, found bool) {
	tests := slices.DeleteFunc(slices.Clone(s.tests), func(t test) bool { return t.reached != nil && !t.reached[bug] })
	reached = len(tests) > 0
	for budget := time.Second; len(tests) > 0 && ctx.Err() == nil; budget *= 4 {
		var names []string
		var sum time.Duration
		for len(tests) > 0 && (len(names) == 0 || sum+tests[0].took <= budget) {
			names, sum, tests = append(names, tests[0].name), sum+tests[0].took, tests[1:]
		}
		if failed, _ := s.attempt(ctx, names, 5*sum+10*time.Second, "MUTANT="+strconv.Itoa(bug)); failed {
			return reached, true
		}
	}
	return reached, false
}

// attempt runs tests, and reports whether they fail or do not end.
func (s *suite) attempt(ctx context.Context, names []string, limit time.Duration,
	environment string,
) (failed bool, out []byte) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(limited, s.binary, "-test.failfast", "-test.short="+strconv.FormatBool(s.short),
		"-test.run", "^("+strings.Join(names, "|")+")$")
	c.Dir, c.Env = s.directory, append(append(os.Environ(), s.environment...), environment)
	// The processes that tests start end with them.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	return c.Run() != nil, text.Bytes()
}
