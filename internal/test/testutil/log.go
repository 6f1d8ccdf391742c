package testutil

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
func (b *LogBuffer) Await(t *testing.T, words ...string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if lines := b.Lines(words...); len(lines) > 0 {
			return lines[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("no line with %q in\n%s", words, strings.Join(b.Lines(), "\n"))
		}
	}
}
