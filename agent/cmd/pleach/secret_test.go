//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// invoke runs a command and returns what it writes.
func invoke(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// The steps of a rotation change a secret file as a whole, keep its mode, and are refused in another
// order. The check of a step fails before all members have the file.
func TestSecretRotation(t *testing.T) {
	dir := t.TempDir()
	here, there := filepath.Join(dir, "here"), filepath.Join(dir, "there")
	const old = "the old secret of a group"
	for _, file := range []string{here, there} {
		if err := os.WriteFile(file, []byte(old), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	g, err := pleach.Create(t.Context(),
		pleach.Config{Group: "web", ID: "a", Security: pleach.Security{SecretFile: there}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	check := func() (string, error) {
		return invoke(t, "secret", "check", g.Self().Address, "--group", "web", "--secret-file", here)
	}
	var added string
	for _, step := range []struct {
		name, file string
		good       bool
	}{
		{"use", here, false},
		{"else", here, false},
		{"add", here + ".none", false},
		{"add", here, true},
		{"add", here, false},
		{"use", here, true},
		{"drop", here, true},
	} {
		if out, err := invoke(t, "secret", "rotate", "--step", step.name, step.file); (err == nil) != step.good {
			t.Fatalf("%s: %s, %v", step.name, out, err)
		} else if err != nil {
			continue
		}
		secrets, err := admission.ReadSecrets(here)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		switch step.name {
		case "add":
			added = string(secrets[1])
			want = []string{old, added}
			if out, err := check(); err == nil || !strings.Contains(out, "secret 1  a  accepted\nsecret 2  a  ") ||
				strings.Contains(out, added) {
				t.Errorf("before the file is there: %s, %v", out, err)
			}
			b, _ := os.ReadFile(here)
			if err := os.WriteFile(there+".new", b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(there+".new", there); err != nil {
				t.Fatal(err)
			}
			testutil.Eventually(t, "the member accepts both", func() bool {
				out, err := check()
				return err == nil && strings.Contains(out, "secret 2  a  accepted\n")
			})
		case "use":
			want = []string{added, old}
		case "drop":
			want = []string{added}
		}
		if got := string(bytes.Join(secrets, []byte("\n"))); got != strings.Join(want, "\n") {
			t.Errorf("%s: %q, want %q", step.name, got, want)
		}
	}
	if info, err := os.Stat(here); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A member is evicted by the others, and refused if they are no quorum or nobody has its ID.
func TestEvictCommand(t *testing.T) {
	c := pleach.Config{Group: "web", ID: "a"}
	a, err := pleach.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]*pleach.Group{"a": a}
	for _, id := range []string{"b", "c"} {
		c.ID = id
		groups[id], err = pleach.Join(t.Context(), c, a.Self().Address)
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, g := range groups {
			_ = g.Abort()
		}
	}()
	for id, g := range groups { // in the view before, two members are left, and no quorum without one
		testutil.Eventually(t, id+" is in a view of three", func() bool { return g.View().Size() == 3 })
	}
	evict := func(id, address string) (string, error) { return invoke(t, "evict", id, address, "--group", "web") }
	if out, err := evict("d", a.Self().Address); err == nil || !strings.Contains(err.Error(), `no member "d"`) {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := evict("a", a.Self().Address); err != nil || !strings.Contains(out, "evicted a\n") { // asks another one
		t.Errorf("%s, %v", out, err)
	}
	if out, err := evict("b", groups["c"].Self().Address); err == nil || !strings.Contains(err.Error(), "no quorum") {
		t.Errorf("of two members, the one with the lower rank: %s, %v", out, err)
	}
	if out, err := evict("c", groups["b"].Self().Address); err != nil || !strings.Contains(out, "evicted c\n") {
		t.Errorf("%s, %v", out, err)
	}
}
