//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// planter plants bugs, some at a time, and keeps the verdicts.
type planter struct {
	*options
	sites []site // all of the packages
	equal equal
	look  func(directory string) []finder
	known map[string]verdict // by a run before this one, by site

	mu       sync.Mutex
	record   record
	verdicts *os.File // nil: none is wanted
}

// plantAll plants bugs, package by package.
func (l *planter) plantAll(ctx context.Context, chosen []site) error {
	if err := l.openLog(); err != nil {
		return err
	}
	defer l.verdicts.Close()
	for directory := range strings.SplitSeq(l.packages, ",") {
		var unknown []site
		for _, s := range chosen {
			if s.directory() != strings.TrimPrefix(directory, "./") {
				continue
			}
			if l.equal[s.name()] != "" {
				l.record.Equal++
				l.record.of(s.directory()).Equal++
			} else if v, ok := l.known[s.String()]; ok {
				l.record.take(v)
			} else {
				unknown = append(unknown, s)
			}
		}
		if len(unknown) > 0 {
			if err := l.plantIn(ctx, unknown); err != nil {
				return err
			}
		}
	}
	return nil
}

// plantIn plants bugs of one package.
func (l *planter) plantIn(ctx context.Context, chosen []site) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	directory := chosen[0].directory()
	all := slices.DeleteFunc(slices.Clone(l.sites), func(s site) bool { return s.directory() != directory })
	fmt.Fprintf(os.Stderr, "%d bugs of %d in %s\n", len(chosen), len(all), directory)
	t, err := newTarget(l.root, dir, all, l.workers, l.look(directory))
	if err != nil {
		return err
	}
	return parallel(l.workers, chosen, func(s site) error {
		v, err := t.plant(ctx, s)
		if err != nil {
			return err
		}
		return l.take(v)
	})
}

// parallel calls do for each item of a list, with so many workers, until one call fails.
func parallel[T any](workers int, list []T, do func(T) error) (err error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for err == nil && len(list) > 0 {
				first := list[0]
				list = list[1:]
				mu.Unlock()
				failure := do(first)
				mu.Lock()
				err = errors.Join(err, failure)
			}
		})
	}
	group.Wait()
	return err
}

// take counts a bug and logs it.
func (l *planter) take(v verdict) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.take(v)
	if l.verdicts == nil {
		return nil
	}
	v.Commit = l.record.Commit
	return json.NewEncoder(l.verdicts).Encode(v)
}

// openLog reads what a run before this one has found out about the same code, and continues
// there.
func (l *planter) openLog() (err error) {
	if l.log == "" {
		return nil
	}
	l.verdicts, err = os.OpenFile(l.log, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.known = make(map[string]verdict)
	lines := bufio.NewScanner(l.verdicts)
	for lines.Scan() {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return fmt.Errorf("%s: %w", l.log, err)
		}
		if v.Commit == l.record.Commit {
			l.known[v.String()] = v
		}
	}
	return lines.Err()
}
