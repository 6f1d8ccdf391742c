package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// What people may change about tests is one table: internal/test/testutil has it, CONTRIBUTING.md
// shows it, and no test has flags or variables of its own.
func TestKnobsAreOneTable(t *testing.T) {
	page, err := os.ReadFile("../../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, k := range testutil.Knobs {
		fmt.Fprintf(&rows, "| `%s` | %s |\n", k.Knob, k.Does)
	}
	if table := "| variable | what it does |\n|---|---|\n" + rows.String(); !strings.Contains(string(page), table) {
		t.Errorf("CONTRIBUTING.md has not this table:\n%s", table)
	}
	own := regexp.MustCompile(`flag\.(Bool|Int|Uint64|String)\(|Getenv\("PLEACH_(` + knobNames() + `)"\)`)
	err = filepath.WalkDir("../../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if found := own.Find(text); found != nil && !strings.HasSuffix(path, "knobs_test.go") {
			t.Errorf("%s: %s: tests take knobs of internal/test/testutil", path, found)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func knobNames() string {
	var names []string
	for _, k := range testutil.Knobs {
		names = append(names, strings.TrimPrefix(string(k.Knob), "PLEACH_"))
	}
	return strings.Join(names, "|")
}
