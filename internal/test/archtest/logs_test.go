package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// logCall is a call that logs a line of INFO and above, and verb what its text leaves open.
var (
	logCall = regexp.MustCompile(`[lL]og(?:ger)?\.(?:Info|Warn|Error)\((?:fmt\.Sprintf\()?"([^"]+)"`)
	verb    = regexp.MustCompile(`%[a-z]`)
)

// An operator finds every log line in docs/operate/logs.md, with its meaning.
func TestLogLinesAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operate/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	err = filepath.WalkDir("../../..", func(path string, e fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, "../../../"))
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{"bench", "sql", "verify", "tools", "examples", "bindings"}, name):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, call := range logCall.FindAllSubmatch(text, -1) {
			lines++
			says, _, _ := strings.Cut(longest(verb.Split(string(call[1]), -1)), ": ")
			if !strings.Contains(string(page), says) {
				t.Errorf("%s logs %q, which docs/operate/logs.md does not have", name, call[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines < 50 {
		t.Errorf("%d log lines were found: the test looks for the wrong calls", lines)
	}
}

func longest(parts []string) string {
	return slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
}
