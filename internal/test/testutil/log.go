package testutil

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

// LogBuffer is a log that a test reads while it is written. The zero value is empty.
type LogBuffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

// Write implements [io.Writer].
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.Write(p)
}

// String returns everything so far.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.String()
}

// Logger logs to the buffer what is logged by default: no line at Debug.
func (b *LogBuffer) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// Lines returns the lines with all of the words.
func (b *LogBuffer) Lines(words ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(strings.Split(b.bytes.String(), "\n"), func(line string) bool {
		return line == "" || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}

// Await waits for a line with all of the words, and returns it.
func (b *LogBuffer) Await(t *testing.T, words ...string) (line string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("a line with %q", words), func() bool {
		lines := b.Lines(words...)
		if len(lines) > 0 {
			line = lines[0]
		}
		return len(lines) > 0
	}, func() any { return b.String() })
	return line
}
