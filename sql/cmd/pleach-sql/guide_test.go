//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// left stands in a page where output is left out.
var left = regexp.MustCompile(`\s*…\s*`)

// The commands of the guide are run as they are printed, from a directory that has nothing
// but what `make build sql` builds. This test's program is pleach-sql.
func TestGuideToSQL(t *testing.T) {
	directory := t.TempDir()
	if err := os.Mkdir(filepath.Join(directory, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(directory, "bin"), "./agent/cmd/pleach")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(directory, "bin/pleach-sql")); err != nil {
		t.Fatal(err)
	}
	const guide = "../../../docs/guide/sql.md"
	first := testutil.CodeBlocks(t, guide, "Fault-tolerant SQL with DuckDB")[0].Commands()
	if len(first) != 3 || first[0].Line != "make build sql" || first[2].Output == "" {
		t.Fatalf("%+v", first)
	}
	own := testutil.CodeBlocks(t, guide, "Your own tables")[0].Commands()
	plan := testutil.CodeBlocks(t, guide, "Query plans")[0].Commands()
	for _, c := range slices.Concat(first[1:], own, plan) {
		cmd := exec.Command("bash", "-c", c.Line)
		cmd.Dir, cmd.Env = directory, append(os.Environ(), commandVariable+"=1")
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", c.Line, err, out)
		}
		for _, part := range left.Split(strings.TrimSpace(c.Output), -1) {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s prints %s\nwithout %s", c.Line, out, part)
			}
		}
		t.Logf("%s: %v", c.Line, time.Since(began))
	}
}
