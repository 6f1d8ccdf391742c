package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pages quote this program: every line of their Go samples is in its source.
func TestPagesQuoteThisProgram(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for _, page := range []string{"tutorial.md", "testing.md"} {
		text, err := os.ReadFile("../../docs/guide/" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```go\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s has no Go sample", page)
		}
		for _, block := range blocks {
			sample, _, _ := strings.Cut(block, "```")
			for line := range strings.Lines(sample) {
				line = strings.TrimSpace(line)
				if line != "…" && !strings.Contains(source.String(), line) {
					t.Errorf("%s: %q is not in the source", page, line)
				}
			}
		}
	}
}
