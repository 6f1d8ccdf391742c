//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// schema is a package with all of its bugs at once, of which a variable of the environment
// switches one on: tests are compiled once, not once for each bug (mutant schemata; Untch,
// Offutt & Harrold 1993). It writes it into a directory, and returns the overlay that shows it to
// go in place of the tree.
func schema(root, dir string, sites []site) (overlay string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for len(sites) > 0 {
		n := 1
		for n < len(sites) && sites[n].File == sites[0].File {
			n++
		}
		original, source := filepath.Join(root, sites[0].File), sites[0].source
		changed := filepath.Join(dir, filepath.Base(original))
		if err := os.WriteFile(changed, []byte(render(source, 0, len(source), sites[:n])), 0o600); err != nil {
			return "", err
		}
		replace[original] = changed
		if len(replace) == 1 {
			name := filepath.Join(dir, "mutant_switch.go")
			if err := os.WriteFile(name, []byte("package "+packageOf(source)+switchSource), 0o600); err != nil {
				return "", err
			}
			replace[filepath.Join(filepath.Dir(original), "mutant_switch.go")] = name
		}
		sites = sites[n:]
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// packageOf returns the name of a file's package.
func packageOf(source []byte) string {
	_, rest, _ := bytes.Cut(append([]byte("\n"), source...), []byte("\npackage "))
	return string(bytes.Fields(rest)[0])
}

// render returns a part of a file with switches for the sites, which are all within it. An
// outer site comes before those within it.
func render(source []byte, from, to int, sites []site) string {
	var text strings.Builder
	for len(sites) > 0 {
		s, n := &sites[0], 1
		for n < len(sites) && sites[n].from < s.to {
			n++
		}
		text.Write(source[from:s.from])
		text.WriteString(s.render(source, sites[1:n]))
		from, sites = s.to, sites[n:]
	}
	text.Write(source[from:to])
	return text.String()
}

// render returns a site with its switch. The sites within it are those given.
func (s *site) render(source []byte, within []site) string {
	inner := func() string { return render(source, s.from, s.to, within) }
	switch {
	case s.Kind == conditionOff:
		return fmt.Sprintf("!mutantOn(%d) && (%s)", s.id, inner())
	case s.Kind == callLeftOut:
		return fmt.Sprintf("if !mutantOn(%d) { %s }", s.id, inner())
	case s.plus || s.minus:
		n := 0
		for n < len(within) && within[n].from < s.left {
			n++
		}
		left, right := render(source, s.from, s.left, within[:n]), render(source, s.right, s.to, within[n:])
		return fmt.Sprintf("mutantSum(mutantOn(%d) != %t, %s, %s)", s.id, s.minus, left, right)
	default:
		return fmt.Sprintf("(mutantOn(%d) && (%s) || !mutantOn(%[1]d) && (%[3]s))", s.id, s.After, inner())
	}
}

// switchSource is the file that chooses a bug: that of MUTANT. If MUTANT_REACHED names a
// file, the numbers of bugs whose places are reached are written there.
const switchSource = `

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantNumber, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantTrace     = mutantOpen(os.Getenv("MUTANT_REACHED"))
	mutantReached   [1 << 16]atomic.Bool
)

func mutantOn(number int) bool {
	if mutantTrace != nil && !mutantReached[number].Load() && !mutantReached[number].Swap(true) {
		if _, err := mutantTrace.WriteString(strconv.Itoa(number) + "\n"); err != nil {
			panic(err)
		}
	}
	return number == mutantNumber
}

// A test may leave its process no descriptors: the file is opened before.
func mutantOpen(name string) *os.File {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}

func mutantSum[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64](minus bool, a, b T) T {
	if minus {
		return a - b
	}
	return a + b
}
`
