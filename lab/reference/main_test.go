package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Each reference has what its source has, and nothing that the site would take for HTML.
func TestReferences(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := write("../..", dir); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"go":         {"| [`github.com/pleach-go/pleach`](go-pleach.md) |", "transport/fault", "/sql`]"},
		"go-pleach":  {"## Type Group\n", "### Group.Broadcast\n", "```go\nfunc (g *Group) Broadcast(", "### Join\n"},
		"go-ordered": {"# Package ordered\n"},
		"python":     {"#### Comm.allreduce\n", "## Module pleach.torch\n", "### JobEnded\n"},
		"agent": {
			"## `PUT /v1/shards/{name}`", "Right: `operate`.", "| `wait` | query | boolean |", "If empty, none.",
			"### Receipt\n",
		},
	} {
		text, err := os.ReadFile(dir + "/" + name + ".md")
		if err != nil {
			t.Error(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s.md does not have %q", name, want)
			}
		}
	}
}
