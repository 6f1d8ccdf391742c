//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
)

// launcherLine is a line about the end of a process.
var launcherLine = regexp.MustCompile(`(?m)^pleach: .*\n`)

// newShop imports a table in which one part has a text instead of a number.
func newShop(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sales.csv"), []byte("id,cents\n1,250\n2,310\n3,320\n4,x\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "import", "--parts", "4", "--out", "shop", "sales=sales.csv")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), commandVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "shop")
}

// Four processes print a query's error once, in the words of the query, and a result without
// anything else (case 104).
func TestErrorIsPrintedOnce(t *testing.T) {
	dir := newShop(t)
	for query, want := range map[string]string{
		"DELETE FROM sales":                     "pleach-sql: sql: only SELECT is supported, and the query is \"DELETE FROM sales\"\n",
		"SELECT sum(cents::INTEGER) FROM sales": "pleach-sql: sql: Conversion Error: Could not convert string 'x' to INT32 when casting from source column cents\n",
		"SELECT nothing FROM sales": "pleach-sql: sql: Binder Error: Referenced column \"nothing\" not found in FROM clause!\n" +
			"Candidate bindings: \"cents\"\n\nLINE 1: SELECT nothing FROM sales\n               ^\n",
		"SELECT sum(id) FROM sales": "",
	} {
		var stdout, stderr bytes.Buffer
		report, err := launch.Run(launch.Job{
			Size: 4, Program: os.Args[0], Args: []string{"pleach-sql", "run", "--data", dir, query},
			Env: []string{commandVariable + "=1"}, Grace: time.Second,
			Output: &launch.Output{Stdout: launch.Stream{Writer: &stdout}, Stderr: launch.Stream{Writer: &stderr}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if said := launcherLine.ReplaceAllString(stderr.String(), ""); said != want {
			t.Errorf("%s prints %s\nwant %s", query, said, want)
		}
		if _, failed := report.FirstFailure(); failed != (want != "") || failed == strings.Contains(stdout.String(), "10\n") {
			t.Errorf("%s: failed %v, and printed %s", query, failed, &stdout)
		}
	}
}
