//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// equal lists bugs that are equal in effect to what they replace, by their names, each with
// the reason. A line of its file is
//
//	DIRECTORY FUNCTION | KIND | EXPRESSION | REASON
//
// It names no line of the source, so that it outlives edits elsewhere.
type equal map[string]string

// readEqual reads a list. Lines that begin with # are comments.
func readEqual(name string) (equal, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	list := equal{}
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.SplitN(line, " | ", 4)
		if len(fields) != 4 || fields[3] == "" {
			return nil, fmt.Errorf("%s: %q is not DIRECTORY FUNCTION | KIND | EXPRESSION | REASON", name, line)
		}
		list[strings.Join(fields[:3], " | ")] = fields[3]
	}
	return list, scanner.Err()
}

// name is what the list calls a bug.
func (s *site) name() string {
	return fmt.Sprintf("%s %s | %s | %s", s.directory(), s.Function, s.Kind, strings.Join(strings.Fields(s.Before), " "))
}

// check returns an error if a line names no place in the directories: what it excused is gone.
func (e equal) check(folders []string, sites []site) error {
	names := make(map[string]bool, len(sites))
	for i := range sites {
		names[sites[i].name()] = true
	}
	for name := range e {
		directory, _, _ := strings.Cut(name, " ")
		if slices.Contains(folders, directory) && !names[name] {
			return fmt.Errorf("the list of bugs that are equal in effect names a place that is gone: %s", name)
		}
	}
	return nil
}
