//go:build unix

package command

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func TestRun(t *testing.T) {
	out, err := Shell("cat; echo $WHAT").Run(t.Context(), []byte("in "), "WHAT=out")
	if err != nil || string(out) != "in out\n" {
		t.Errorf("got %q, %v", out, err)
	}
	_, err = Shell("echo first >&2; echo last >&2; exit 3").Run(t.Context(), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 3: last") {
		t.Errorf("got %v", err)
	}
	if _, err = Shell("exec head -c 2000000 /dev/zero").Run(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "output is longer") {
		t.Errorf("got %v", err)
	}
}

// The children of a shell end with it: a sleep that kept the output open would hold Run.
func TestRunEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Shell("sleep 600; true").Run(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestLineIsTextOrList(t *testing.T) {
	var lines []Line
	if err := yaml.Unmarshal([]byte("[echo a | cat, [printf, '%s|', a b, c]]"), &lines); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a\n", "a b|c|"} {
		if out, err := lines[i].Run(t.Context(), nil); err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v", lines[i], out, err)
		}
	}
}
