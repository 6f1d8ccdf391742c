//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// finder is a run of tests that may find a bug.
type finder struct {
	name        string
	packages    []string
	run         string // as for go test; "": all tests
	environment []string
	short       bool
}

// verdict is what became of a bug.
type verdict struct {
	site
	Commit string `json:"commit"`
	// By names the finder that has found it; "": it has survived.
	By      string  `json:"by,omitempty"`
	Reached bool    `json:"reached"` // its place was, by a finder
	Seconds float64 `json:"seconds"`
}

// target is a package whose bugs are looked for.
type target struct {
	root, dir, overlay string
	trials             []trial
}

// trial is a finder with its tests compiled.
type trial struct {
	finder
	folder, binary string
	reached        map[int]bool  // bugs whose places it reaches, by number
	limit          time.Duration // a run that lasts longer does not end: the bug is found
}

// newTarget compiles the tests that look for bugs of a package, and runs them without one.
func newTarget(ctx context.Context, root, dir string, sites []site, finders []finder) (*target, error) {
	t := &target{root: root, dir: dir}
	var err error
	if t.overlay, err = schema(root, dir, sites); err != nil {
		return nil, err
	}
	for _, f := range finders {
		for _, folder := range f.packages {
			if err := t.compile(ctx, f, folder); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// compile compiles the tests of a folder, and runs them without a bug.
func (t *target) compile(ctx context.Context, f finder, folder string) error {
	binary := filepath.Join(t.dir, fmt.Sprintf("%d.test", len(t.trials)))
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", t.overlay, "-o", binary, folder)
	build.Dir = t.root
	if out, err := build.CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("go test -c %s: %w\n%s", folder, err, out))
	}
	trace := binary + ".reached"
	r := trial{finder: f, folder: filepath.Join(t.root, folder), binary: binary, reached: map[int]bool{}, limit: 10 * time.Minute}
	began := time.Now()
	if failed, out := r.attempt(ctx, "MUTANT_REACHED="+trace); failed {
		return errors.Join(ctx.Err(), fmt.Errorf("the tests of %s fail without a bug:\n%s", folder, out))
	}
	r.limit = 5*time.Since(began) + 30*time.Second
	list, err := os.ReadFile(trace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.FieldsSeq(string(list)) {
		number, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		r.reached[number] = true
	}
	t.trials = append(t.trials, r)
	return nil
}

// plant switches a bug on, and has those trials look for it that reach its place.
func (t *target) plant(ctx context.Context, s site) (verdict, error) {
	v := verdict{site: s}
	began := time.Now()
	for _, r := range t.trials {
		if !r.reached[s.id] {
			continue
		}
		v.Reached = true
		failed, _ := r.attempt(ctx, "MUTANT="+strconv.Itoa(s.id))
		if ctx.Err() != nil {
			return v, ctx.Err()
		}
		if failed {
			v.By = r.name
			break
		}
	}
	v.Seconds = time.Since(began).Seconds()
	return v, nil
}

// attempt runs the tests, and reports whether they fail or do not end.
func (r *trial) attempt(ctx context.Context, environment string) (failed bool, out []byte) {
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	c := exec.CommandContext(limited, r.binary, "-test.failfast", "-test.short="+strconv.FormatBool(r.short), "-test.run", r.run)
	c.Dir, c.Env = r.folder, append(append(os.Environ(), r.environment...), environment)
	// The processes that tests start end with them.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	return c.Run() != nil, text.Bytes()
}
