//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// finder is a run of tests that may find a bug.
type finder struct {
	name        string
	packages    []string
	run         string // as for go test; "": all tests
	environment []string
	short       bool
	// unmeasured has all tests look for every bug: to find out which of them reach its place
	// would take as long as to look for it.
	unmeasured bool
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
	workers            int
	finders            []finder

	mu     sync.Mutex
	suites map[int][]*suite // by the number of their finder; compiled when a bug needs them
}

// newTarget writes a package with all of its bugs.
func newTarget(root, dir string, sites []site, workers int, finders []finder) (*target, error) {
	overlay, err := schema(root, dir, sites)
	return &target{root: root, dir: dir, overlay: overlay, workers: workers, finders: finders, suites: map[int][]*suite{}},
		err
}

// suitesOf returns the tests of a finder. The first bug that comes so far has them compiled.
func (t *target) suitesOf(ctx context.Context, n int) ([]*suite, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if suites, ok := t.suites[n]; ok {
		return suites, nil
	}
	var suites []*suite
	for i, directory := range t.finders[n].packages {
		s, err := t.compile(ctx, t.finders[n], directory, filepath.Join(t.dir, fmt.Sprintf("%d-%d.test", n, i)))
		if err != nil {
			return nil, err
		}
		suites = append(suites, s)
	}
	t.suites[n] = suites
	return suites, nil
}

// plant switches a bug on, and has those tests look for it that reach its place.
func (t *target) plant(ctx context.Context, s site) (verdict, error) {
	v := verdict{site: s}
	began := time.Now()
	for n, f := range t.finders {
		suites, err := t.suitesOf(ctx, n)
		if err != nil {
			return v, err
		}
		for _, tests := range suites {
			reached, found := tests.find(ctx, s.id)
			v.Reached = v.Reached || reached
			if ctx.Err() != nil {
				return v, ctx.Err()
			}
			if found {
				v.By, v.Seconds = f.name, time.Since(began).Seconds()
				return v, nil
			}
		}
	}
	v.Seconds = time.Since(began).Seconds()
	return v, nil
}
