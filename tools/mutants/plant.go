//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// patience bounds a run. A bug that makes tests hang is found, too.
const patience = 5 * time.Minute

// verdict is what became of a bug.
type verdict struct {
	site
	// By names the finder that has found it; "": it has survived.
	By      string  `json:"by,omitempty"`
	Seconds float64 `json:"seconds"`
	// builds is false for a change that the compiler refuses: it is no bug.
	builds bool
}

// plant puts a bug into the code that go sees, not into the tree, and has finders look for
// it, one after the other.
func plant(ctx context.Context, root string, s site, finders []finder) (verdict, error) {
	v := verdict{site: s}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(dir)
	overlay, err := s.overlay(root, dir)
	if err != nil {
		return v, err
	}
	began := time.Now()
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+s.folder())
	build.Dir = root
	if v.builds = build.Run() == nil; !v.builds {
		return v, ctx.Err()
	}
	for _, f := range finders {
		found, err := f.find(ctx, root, overlay)
		if err != nil {
			return v, err
		}
		if found {
			v.By = f.name
			break
		}
	}
	v.Seconds = time.Since(began).Seconds()
	return v, nil
}

// overlay writes the file with the bug, and the overlay that shows it to go in its place.
func (s *site) overlay(root, dir string) (name string, err error) {
	original, err := filepath.Abs(filepath.Join(root, s.File))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	rest := source[s.offset:]
	if !bytes.HasPrefix(rest, []byte(s.Before)) {
		return "", fmt.Errorf("%s has changed meanwhile", s.File)
	}
	changed := filepath.Join(dir, filepath.Base(s.File))
	text := append(append(bytes.Clone(source[:s.offset]), s.After...), rest[len(s.Before):]...)
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, replace, 0o600)
}

// find reports whether tests fail, or do not end.
func (f *finder) find(ctx context.Context, root, overlay string) (bool, error) {
	arguments := []string{"test", "-overlay", overlay, "-count=1", "-failfast", "-vet=off", "-timeout", patience.String()}
	if f.short {
		arguments = append(arguments, "-short")
	}
	if f.run != "" {
		arguments = append(arguments, "-run", f.run)
	}
	limited, cancel := context.WithTimeout(ctx, patience+time.Minute)
	defer cancel()
	c := exec.CommandContext(limited, "go", append(arguments, f.packages...)...)
	c.Dir, c.Env = root, append(os.Environ(), f.environment...)
	// The processes that tests start end with them.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	err := c.Run()
	return err != nil, ctx.Err()
}
