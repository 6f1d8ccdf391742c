// Package testutil is what tests of several packages share.
package testutil

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Golden compares encoded frames, byte for byte, with those that a file has under
// the same names, and returns the file's for the test to decode. The file is lines
// of "name: hex", in order of names. The bytes on the wire are a promise to older versions
// of Pleach: a frame that is recorded again needs a new protocol version.
func Golden(t testing.TB, file string, encoded map[string][]byte) map[string][]byte {
	t.Helper()
	lines := make([]string, 0, len(encoded))
	for name, frame := range encoded {
		lines = append(lines, fmt.Sprintf("%s: %x", name, frame))
	}
	recorded := make(map[string][]byte)
	for _, line := range GoldenLines(t, file, lines) {
		name, text, ok := strings.Cut(line, ":")
		frame, err := hex.DecodeString(strings.TrimSpace(text))
		if _, twice := recorded[name]; !ok || err != nil || twice {
			t.Fatalf("%s: %.80q is no frame of its own", file, line)
		}
		recorded[name] = frame
	}
	return recorded
}

// GoldenLines compares lines, in any order, with a file's, and returns the file's.
func GoldenLines(t testing.TB, file string, lines []string) []string {
	t.Helper()
	slices.Sort(lines)
	if UpdateGolden.On() {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (%s=1 records it)", err, UpdateGolden)
	}
	recorded := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, line := range recorded {
		if !slices.Contains(lines, line) {
			t.Errorf("%s has what the code no longer writes:\n%s", file, line)
		}
	}
	for _, line := range lines {
		if !slices.Contains(recorded, line) {
			t.Errorf("%s lacks what the code writes:\n%s", file, line)
		}
	}
	return recorded
}

// EveryKind fails the test if the code understands frames of a kind of which none
// is recorded. The kind is the byte at the given offset: each recorded frame is
// tried with every other kind in its place.
func EveryKind(t testing.TB, frames map[string][]byte, at int, understood func(frame []byte) bool) {
	t.Helper()
	var recorded [256]bool
	for _, frame := range frames {
		recorded[frame[at]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(frames)) {
		frame := bytes.Clone(frames[name])
		for kind := range 256 {
			frame[at] = byte(kind)
			if !recorded[kind] && understood(bytes.Clone(frame)) {
				recorded[kind] = true // once is enough
				t.Errorf("no frame of kind %d is recorded, but %q as one is understood", kind, name)
			}
		}
	}
}
